/* Replays a corpus through one target: every file of the directories that are named, one TAP line each. A target that dies
 * takes the program with it; the last line names the file. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "base/macro.h"

static int compare(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int replay(int dir, const char *path, const char *name, unsigned number) {
        _cleanup_(freep) char *data = NULL, *exact = NULL;
        size_t len;

        printf("# %s/%s\n", path, name);
        fflush(stdout);
        if (read_whole_file(dir, name, 1 << 20, &data, &len) < 0) {
                printf("not ok %u - fuzz: cannot read %s/%s\n", number, path, name);
                return 1;
        }
        exact = malloc(len ? len : 1); /* ends where the input ends, for ASan */
        memcpy(exact, data, len);
        LLVMFuzzerTestOneInput((const uint8_t *) exact, len);
        printf("ok %u - fuzz: %s/%s\n", number, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, name);
        return 0;
}

int main(int argc, char **argv) {
        unsigned number = 0;
        int failed = 0;

        for (int i = 1; i < argc; i++) {
                _cleanup_(closep) int dir = open(argv[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                struct dirent **entries = NULL;
                int n = dir < 0 ? -1 : scandir(argv[i], &entries, NULL, compare);

                if (n < 0) {
                        printf("not ok %u - fuzz: no corpus in %s\n", ++number, argv[i]);
                        failed = 1;
                }
                for (int e = 0; e < n; e++) {
                        if (entries[e]->d_name[0] != '.')
                                failed |= replay(dir, argv[i], entries[e]->d_name, ++number);
                        free(entries[e]);
                }
                free(entries);
        }
        LLVMFuzzerTestOneInput((const uint8_t *) "", 0);
        printf("1..%u\n", number);
        return failed;
}
