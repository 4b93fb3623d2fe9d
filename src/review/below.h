/* What is below the topmost layer: frozen layers and the host's directory, merged as overlayfs does it. Looked up name
 * by name, for the few paths that a run changed; the last directory looked up is cached. */
#pragma once

#include <sys/stat.h>

#include "../tree/tree.h"
#include "../tree/upper.h"

struct below {
        struct upper *frozen; /* the topmost first; the descriptors are the below's */
        size_t n_frozen;
        int host; /* the caller's */
        /* The directory that was last looked up, and those that show in it, the topmost first. */
        char *directory;
        struct below_part {
                int fd;       /* for reading */
                size_t layer; /* n_frozen: the host */
        } * parts;
        size_t n_parts;
};

/* Takes the descriptors over, also where it fails. */
int below_open(const int *frozen, size_t n, int host, struct below *ret);
void below_done(struct below *below);

struct below_entry {
        struct stat st;
        int dir; /* that it is in, until the next lookup */
        bool is_host;
};

/* The entry at a path. 1, 0: none; -errno. */
int below_find(struct below *below, const char *path, struct below_entry *ret);

/* The host's entry at a path, if it shows: no frozen layer has or hides something there. 1: the host's directory shows,
 * and *ret is its entry (st_mode 0: none); 0: it does not show. */
int below_find_host(struct below *below, const char *path, struct stat *ret);

/* The names in a directory, sorted, whiteouts among them; none if there is no such directory. */
int below_list(struct below *below, const char *directory, struct names_list *ret);
