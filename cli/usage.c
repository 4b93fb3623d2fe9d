/* Usage, made from the same table that parses. */
#include "cli.h"

#include <string.h>

static void put(FILE *to, char letter, const char *name, const char *value, const char *help) {
        char left[64];
        bool terse = value && strlen(value) <= 30 && !strchr(value, ' ');

        snprintf(left, sizeof(left), "--%s%s%s", name, terse ? " " : "", terse ? value : "");
        fprintf(to, "  %c%c%c %-34s %s", letter ? '-' : ' ', letter ? letter : ' ', letter ? ',' : ' ', left, help);
        if (value && !terse)
                fprintf(to, ": %s", value);
        fputc('\n', to);
}

void cli_usage(FILE *to) {
        hutch_option_info info;

        fputs("usage: hutch [OPTIONS] [--] COMMAND [ARG…]      run a command in a box\n"
              "       hutch run [OPTIONS] -c 'SHELL TEXT'      run shell text in a box\n"
              "       hutch explain [OPTIONS] [--] COMMAND     show the plan, run nothing (--json for programs)\n"
              "       hutch shell [OPTIONS]                    an interactive shell in a box\n"
              "       hutch session start | run | state | reset | attach | list | stop [NAME]   a shell that stays\n"
              "       hutch boxes | diff | apply | discard [--box ID] [PATH…]   review copy-on-write changes\n"
              "       hutch snapshot | restore | fork [--box ID] [NAME]   keep the state of a box, go back, branch "
              "off\n"
              "       hutch export | import FILE.tar.zst       a box's changes as a file, and back\n"
              "       hutch doctor [--json]                    what this host can enforce, and how to mend gaps\n"
              "\n"
              "The command sees the system read-only, an empty home, and the workspace (the current folder,\n"
              "or -d DIR) at /workspace/<name>; it has no network unless --net open says so.\n"
              "\n"
              "options:\n",
              to);
        for (size_t i = 0; hutch_option_describe(i, &info); i++)
                put(to, info.letter, info.name, info.value_name, info.help);
        put(to, 'c', "cmd", "TEXT", "run shell text (bash where there is one, else sh)");
        put(to, 0, "stdin", "inherit|none|FILE", "where standard input comes from");
        put(to, 0, "json", NULL, "capture both streams and print one result object");
        put(to, 0, "result", "FILE", "write the result object there, streams as usual");
        put(to, 0, "capture", NULL, "print stdout at the end, in one piece");
        put(to, 0, "box", "ID",
            "which box: to review, or for run to go on with (default: the newest of this workspace, a new one)");
        put(to, 0, "stat", NULL, "diff: one line a file");
        put(to, 0, "name-only", NULL, "diff: names alone");
        put(to, 0, "force", NULL,
            "apply: also protected names and files that the host changed since; import: also links that lead out");
        put(to, 0, "older-than", "AGE", "discard: all boxes older than this (7d)");
        put(to, 0, "shell", "PATH", "shell, session start: which shell (default: bash where there is one)");
        put(to, 0, "idle-timeout", "D", "session start: end it when nobody used it for so long");
        put(to, 0, "session", "NAME", "snapshot, restore, fork: of a session instead of a box");
        put(to, 0, "stop", NULL, "snapshot, fork: end what runs beside the session's shell first");
        put(to, 0, "copy", NULL, "snapshot, fork: copy the session's files while what runs stands still");
        put(to, 0, "discard", NULL, "session stop: drop what it changed");
        put(to, 0, "list", NULL, "snapshot: list all of them");
        put(to, 0, "remove", "SNAPSHOT", "snapshot: remove one, by name or id");
        put(to, 0, "max-size", "N", "import: the most bytes it may hold (16G)");
        put(to, 0, "max-entries", "N", "import: the most entries it may hold (1000000)");
        put(to, 'h', "help", NULL, "this text");
        put(to, 'V', "version", NULL, "the version");
        fputs("\nexit status: the command's own; 128+N killed by signal N; 124 timeout; 125 hutch could not or\n"
              "would not run it; 126 not executable; 127 not found.\n",
              to);
}
