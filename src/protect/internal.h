/* What the files of this room share. */
#pragma once

#include "../base/buf.h"
#include "names.h"
#include "protect.h"

enum lead_kind {
        LEAD_PROGRAMS,    /* a directory of which programs and links count alone */
        LEAD_WHOLE,       /* a file, or all of a directory */
        LEAD_NAME,        /* also with the extension of a language */
        LEAD_NEW_MODULES, /* a directory that python imports from; what the host has there already does not count */
        LEAD_MODULES,
};

struct lead {
        char *path; /* absolute, beneath top, resolved as far as it exists */
        char *why;
        enum lead_kind kind;
};

struct protect {
        const struct protect_tree *tree;
        void *directories; /* a search tree of what is known about single directories, see vcs.c */
        struct lead *leads;
        size_t n_leads;
        bool has_leads;
        char *git;             /* the host's git; NULL: none */
        struct buf general;    /* its configuration that holds in every repository */
        size_t n_asked;        /* repositories that git was asked about */
        char **scripts;        /* what was searched for paths already */
        struct staged *staged; /* what was found in repositories, see staged.c */
};

int protect_stat(const struct protect *p, enum protect_side side, const char *path, struct stat *ret);

/* How a path meets data/protected and the lists of the policy: the stronger of these. */
enum names_match protect_find_name(const struct protect *p, const char *path, bool directory, const char **ret);

/* Where an absolute path leads, with every link followed as on that side. A part that does not exist, or cannot be
 * examined, stays as written. Each link that was followed is appended to *links (may be NULL). */
int protect_resolve(const struct protect *p, enum protect_side side, const char *path, char ***links, char **ret);

/* "/a" and "b" → "/a/b", "/" and "b" → "/b". NULL on lack of memory. */
char *protect_join(const char *directory, const char *name);
