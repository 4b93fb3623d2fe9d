/* hutch: the command. Each verb is in a separate file. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

void cli_complain(const char *format, ...) {
        char line[2048];
        va_list args;

        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        hutch_clean_line(line);
        fprintf(stderr, "hutch: %s\n", line);
}

static int dispatch(const struct invocation *in) {
        if (in->version)
                return verb_version.run(in);
        if (in->help) {
                if (in->verb == &verb_run)
                        cli_help(stdout);
                else
                        cli_help_verb(stdout, in->parent, in->verb);
                return 0;
        }
        if (in->error.code != HUTCH_OK && !(in->verb->flags & VERB_RESULT)) {
                cli_complain("%s", in->error.message);
                return EXIT_HUTCH;
        }
        return in->verb->run(in);
}

int main(int argc, char **argv) {
        struct invocation in = {0};
        int status = EXIT_HUTCH, fd;

        /* If the caller closed one of the three streams, no file of ours may take its number. */
        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd < 3);
        if (fd >= 3)
                close(fd);
        if (argc < 2)
                cli_help_short(stderr);
        else if (cli_parse(argc, argv, &in) == 0)
                status = dispatch(&in);
        cli_done(&in);
        if (fflush(stdout) != 0 && status == 0) {
                cli_complain("cannot write to stdout: %s", hutch_errno_text(errno));
                status = EXIT_HUTCH;
        }
        return status;
}
