/* hutch profiles: the profiles that come with hutch for well-known commands. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "verbs.h"

static int list(void) {
        const char *name;

        for (size_t i = 0; (name = hutch_profile_name(i)); i++) {
                hutch_error err = {0};
                char *summary;

                if (hutch_profile_summary(name, &summary, &err) < 0) {
                        cli_complain("%s", err.message);
                        return EXIT_HUTCH;
                }
                printf("%-12s %s\n", name, summary);
                hutch_free(summary);
        }
        return 0;
}

static int profiles(const struct invocation *in) {
        hutch_error err = {0};
        char *text;

        if (in->n_args == 0)
                return list();
        if (strcmp(in->args[0], "show") != 0 || in->n_args != 2) {
                cli_complain("unexpected argument '%s': hutch profiles [show NAME]",
                             in->args[strcmp(in->args[0], "show") ? 0 : in->n_args - 1]);
                return EXIT_HUTCH;
        }
        if (hutch_profile_text(in->args[1], &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        hutch_free(text);
        return 0;
}

const struct verb verb_profiles = {
        .name = "profiles",
        .synopsis = "[show NAME]",
        .summary = "list and show the profiles for well-known commands",
        .max_args = 2,
        .run = profiles,
};
