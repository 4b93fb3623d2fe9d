/* Files that a program finds by itself, from words that are no paths: modules, packages and names that are fixed. */
#pragma once

#include <stdbool.h>

/* One command of a text; all zero at its start. */
struct modules {
        bool begun, prints, interpreter, python, named;
        bool script;      /* the last word is the script that python runs */
        const char *tool; /* looks for fixed names */
        enum {
                MODULES_NOTHING,
                MODULES_MODULE,    /* python -m */
                MODULES_PACKAGE,   /* node --require */
                MODULES_FILE,      /* make -f */
                MODULES_DIRECTORY, /* perl -I, PYTHONPATH= */
        } next;
};

/* Appends what a word stands for to *paths, relative to where the program starts. Sets *imports if the program imports
 * modules from there. 0 or -ENOMEM. */
int modules_read(struct modules *m, const char *word, char ***paths, bool *imports);

/* The same for what comes before an equals sign: PYTHONPATH, --require. */
void modules_read_name(struct modules *m, const char *name);

/* Whether a program is python, by its path or a variable's name. */
bool modules_is_python(const char *word);

/* Whether a file is code by its last extension, so that `name` finds it as `name.js`. */
bool modules_is_code(const char *name);

/* Whether python finds a module at a path relative to a directory that it imports from. `link`: it is a link. `deep`:
 * modules of packages count, and compiled ones. */
bool modules_is_import(const char *path, bool link, bool deep);
