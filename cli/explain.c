/* hutch explain: the plan, and nothing else. */
#include "cli.h"

#include <stdlib.h>

int cli_explain(struct cli *cli) {
        hutch_request request = {.struct_size = sizeof(request), .argv = cli->argv, .command = cli->command};
        hutch_error err = {0};
        char *text;

        if (hutch_explain(cli->policy, &request, cli->json, &text, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        fputs(text, stdout);
        if (cli->json)
                fputc('\n', stdout);
        free(text);
        return 0;
}
