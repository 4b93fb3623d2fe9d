/* hutch doctor: what this host can enforce, and how to mend the gaps. */
#include "cli.h"

#include <stdlib.h>

int cli_doctor(struct cli *cli) {
        hutch_context *context = NULL;
        hutch_error err = {0};
        bool strong = false;
        char *text;

        if (hutch_context_new(HUTCH_WARDEN_SELF, &context, &err) < 0 ||
            hutch_doctor(context, cli->json, &strong, &text, &err) < 0) {
                cli_complain("%s", err.message);
                hutch_context_free(context);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (cli->json)
                fputc('\n', stdout);
        free(text);
        hutch_context_free(context);
        return strong ? 0 : 1;
}
