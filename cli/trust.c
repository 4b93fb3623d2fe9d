/* hutch trust: accept a workspace's own policy files, or the profile of a language for it, after showing them; and the
 * question that a run asks when they changed. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "verbs.h"

struct trust_options {
        bool yes, forget, show;
        const char *profile;
};

#define AT(field) OPTION_AT(struct trust_options, field)

static const struct option options[] = {
        {"yes", 'y', NULL, "accept without asking", AT(yes)},
        {"show", 0, NULL, "show what would be accepted, and nothing else", AT(show)},
        {"forget", 0, NULL, "accept nothing of this workspace any more", AT(forget)},
        {"profile", 0, "NAME", "accept the profile of a language instead: its hosts and configuration", AT(profile)},
        {0},
};

/* The answer is read from the terminal byte by byte: what follows it belongs to the command. */
static bool ask(const char *question) {
        char c = 0, first = 0;

        fprintf(stderr, "%s [y/N] ", question);
        while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
                first = first ? first : c;
        return first == 'y' || first == 'Y';
}

static int accept(const hutch_trust *trust) {
        hutch_error err = {0};

        if (hutch_trust_accept(trust, &err) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        return 0;
}

static int decide(const hutch_trust *trust, const struct trust_options *o) {
        hutch_error err = {0};

        if (o->forget) {
                if (hutch_trust_forget(trust, &err) == 0)
                        return 0;
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        switch (hutch_trust_get_state(trust)) {
        case HUTCH_TRUST_NOTHING:
                cli_complain("nothing to trust: this workspace has neither hutch.yaml nor .jail");
                return EXIT_HUTCH;
        case HUTCH_TRUST_GIVEN:
                printf("already trusted, unchanged\n");
                return 0;
        default:
                break;
        }
        fputs(hutch_trust_text(trust), stdout);
        fflush(stdout);
        if (o->show)
                return 0;
        if (o->yes)
                return accept(trust);
        if (!isatty(STDIN_FILENO)) {
                cli_complain("nothing was accepted: stdin is not a terminal (use --yes to accept what is shown above)");
                return EXIT_HUTCH;
        }
        if (ask(o->profile ? "Apply this profile to every box of this workspace?"
                           : "Apply these settings to every box of this workspace?"))
                return accept(trust);
        cli_complain("nothing was accepted");
        return 1;
}

static int trust(const struct invocation *in) {
        const struct trust_options *o = in->options;
        hutch_error err = {0};
        hutch_trust *t;
        int status;

        if ((o->profile ? hutch_trust_open_profile(in->args[0], o->profile, &t, &err)
                        : hutch_trust_open(in->args[0], &t, &err)) < 0) {
                cli_complain("%s", err.message);
                return EXIT_HUTCH;
        }
        status = decide(t, o);
        hutch_trust_free(t);
        return status;
}

const struct verb verb_trust = {
        .name = "trust",
        .synopsis = "[OPTIONS] [DIR]",
        .summary = "accept a workspace's own policy files, or a language's profile for it",
        .max_args = 1,
        .options = options,
        .size = sizeof(struct trust_options),
        .run = trust,
};

/* ---- before a run ---- */

static void ask_about(hutch_trust *t, const char *question) {
        if (hutch_trust_get_state(t) == HUTCH_TRUST_CHANGED) {
                fputs(hutch_trust_text(t), stderr);
                if (ask(question))
                        accept(t);
        }
        hutch_trust_free(t);
}

/* What was trusted and changed: asks a person at the terminal; otherwise continues without the grants. */
static void ask_again(const struct invocation *in) {
        const char *dir = cli_value(in, "dir"), *profile;
        hutch_trust *t;

        if (hutch_trust_open(dir, &t, NULL) >= 0)
                ask_about(t, "hutch: these policy files changed since you trusted them. Trust them as they are now?");
        for (size_t i = 0; (profile = hutch_profile_name(i)); i++)
                if (hutch_trust_open_profile(dir, profile, &t, NULL) >= 0)
                        ask_about(t, "hutch: this profile changed since you trusted it for this workspace. Trust it as "
                                     "it is now?");
}

void cli_load_config(struct invocation *in) {
        const struct run_options *run = in->verb == &verb_run || in->verb == &verb_shell ? in->options : NULL;
        bool person = run && isatty(STDERR_FILENO) && !run->quiet && !run->json && !run->json_lines;
        hutch_error err = {0};
        const struct explain_options *explain = in->verb == &verb_explain ? in->options : NULL;
        const char *text = run ? run->text : explain ? explain->text : NULL;
        const char *command = in->command ? in->command[0] : text;

        if (in->error.code != HUTCH_OK)
                return;
        if (run && run->request) /* has its policy already */
                return;
        if (isatty(STDERR_FILENO) && isatty(STDIN_FILENO) && in->verb->flags & VERB_RESULT)
                ask_again(in);
        if (hutch_policy_load_config(in->policy, command, person, &err) == 0)
                return;
        in->error = err;
        /* Every mistake in the files; the error itself names the first. */
        const hutch_event *const *events = hutch_policy_events(in->policy);
        for (size_t n = 0; events && events[n]; n++)
                if (events[1] && !strcmp(events[n]->code, "policy_invalid"))
                        cli_complain("%s", events[n]->text);
}
