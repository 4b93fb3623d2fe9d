/* See scene.h. */
#include "scene.h"

#include <sys/random.h>

hutch_box *open_session_with(hutch_context *context, const hutch_policy *policy, const char *shell) {
        hutch_box_options options = {
                .struct_size = sizeof(options), .context = context, .session = true, .shell = shell};
        hutch_box *box = NULL;

        MUST(hutch_box_open(policy, &options, &box, &tap_err));
        return box;
}

hutch_box *open_session(hutch_context *context, const char *shell) {
        hutch_policy *policy = NULL;
        hutch_box *box;

        MUST(hutch_policy_new(&policy));
        box = open_session_with(context, policy, shell);
        hutch_policy_free(policy);
        return box;
}

hutch_result *run_request(hutch_box *box, const hutch_request *request) {
        hutch_result *r = NULL;

        tap_err = (hutch_error){0};
        tap_ret = hutch_box_run(box, request, &r, &tap_err);
        if (!r)
                bail_out(__FILE__, __LINE__, request->command);
        return r;
}

hutch_result *run_for(hutch_box *box, const char *text, unsigned timeout_ms) {
        hutch_request request = {.struct_size = sizeof(request), .command = text, .timeout_ms = timeout_ms};

        return run_request(box, &request);
}

bool says(hutch_box *box, const char *text, const char *want, const char *what) {
        hutch_result *r = run_text(box, text);
        bool good = is(r->output[1], want, what);

        if (!good)
                printf("#   of '%s': status %d, stderr '%s', notice '%s', error '%s'\n", text, r->exit_code,
                       r->output[2], notice_of(r), r->error.message);
        hutch_result_free(r);
        return good;
}

bool in_step(hutch_box *box) {
        char text[64], want[40];
        unsigned long token[2];
        hutch_result *r;
        bool good;

        if (getrandom(token, sizeof(token), 0) != sizeof(token))
                abort();
        snprintf(want, sizeof(want), "%016lx%016lx\n", token[0], token[1]);
        snprintf(text, sizeof(text), "\\echo %s", want);
        r = run_for(box, text, 60000);
        good = tap_ret == 0 && r->exit_code == 0 && !strcmp(r->output[1], want) && r->output_len[2] == 0;
        if (!good)
                printf("#   out of step: want '%s', got '%s', stderr '%s', status %d, error '%s'\n", want, r->output[1],
                       r->output[2], r->exit_code, r->error.message);
        hutch_result_free(r);
        return good;
}

const char *notice_of(const hutch_result *r) {
        static const char *const codes[] = {"shell_restarted", "box_restarted", "late_output"};

        for (const hutch_event *const *n = r->notices; n && *n; n++)
                for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                        if (!strcmp((*n)->code, codes[i]))
                                return (*n)->text;
        return "";
}

bool is_long(void) {
        const char *value = getenv("HUTCH_LONG");

        return value && value[0];
}

static bool play_act(hutch_box *box, const struct act *a) {
        hutch_result *r = run_for(box, a->text, 60000);
        const char *notice = notice_of(r);
        bool good = tap_ret == 0 && (a->code == ANY || r->exit_code == a->code) &&
                    (!a->out || !strcmp(r->output[1], a->out)) && (!a->err || !strcmp(r->output[2], a->err)) &&
                    (!a->notice ? !notice[0] : !strcmp(a->notice, "*") || strstr(notice, a->notice));

        if (!good)
                printf("#   after '%s'\n#   got  %d, out '%s', err '%s', notice '%s', error '%s'\n#   want %d, out "
                       "'%s', err "
                       "'%s', notice '%s'\n",
                       a->text, r->exit_code, r->output[1], r->output[2], notice, r->error.message, a->code,
                       a->out ? a->out : "(any)", a->err ? a->err : "(any)", a->notice ? a->notice : "");
        hutch_result_free(r);
        return good;
}

void play(hutch_context *context, const char *shell, const struct scene *scenes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                hutch_box *box = open_session(context, shell);
                bool good = true;

                for (const struct act *a = scenes[i].acts; a->text; a++)
                        good = play_act(box, a) && good;
                good = in_step(box) && good;
                ok(good, "%s", scenes[i].name);
                hutch_box_close(box);
        }
}
