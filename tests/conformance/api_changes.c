/* Changes by the library: of each run alone, and since the beginning. */
#include <sys/stat.h>

#include "tap.h"

static char directory[] = "/tmp/hutch-changes.XXXXXX";

static void put(char *to, const char *sign, const char *const *paths) {
        for (; paths && *paths; paths++)
                sprintf(to + strlen(to), "%s%s", sign, strrchr(*paths, '/') + 1);
}

static void told(hutch_box *box, const char *text, const char *want) {
        char got[1024] = "";
        hutch_result *r = run_text(box, text);

        put(got, "+", r->created);
        put(got, "~", r->modified);
        put(got, "-", r->deleted);
        if (!ok(!strcmp(got, want), "%s: %s", text, want))
                printf("#   got '%s', error '%s', stderr '%s'\n", got, r->error.message, r->output[2]);
        hutch_result_free(r);
}

static hutch_box *open_box(hutch_context *context, const char *mode, bool track) {
        hutch_box_options options = {.struct_size = sizeof(options), .context = context};
        hutch_policy *p = NULL;
        hutch_box *box = NULL;

        MUST(hutch_policy_new(&p));
        MUST(hutch_policy_set_option(p, "dir", directory, &tap_err));
        MUST(hutch_policy_set_option(p, "workspace", mode, &tap_err));
        if (track)
                MUST(hutch_policy_set_option(p, "track", NULL, &tap_err));
        MUST(hutch_box_open(p, &options, &box, &tap_err));
        hutch_policy_free(p);
        return box;
}

/* The same commands, whoever looks. */
static void runs(hutch_box *box) {
        told(box, "echo 1 >a; echo 2 >b; echo new >>host; rm gone", "+a+b~host-gone");
        told(box, "true", "");
        told(box, "touch a; echo 1 >a; cp b c; mv c b", "");
        told(box, "echo 3 >a; chmod 600 b; echo 5 >d", "+d~a~b");
        told(box, "rm d; echo old >host; echo g >gone; ln -s x l", "+gone+l~host-d");
        told(box, "rm l; mkdir l; echo g >gone", "~l");
        told(box, "rm -r l a b", "-a-b-l");
}

int main(void) {
        hutch_context *context = new_context();
        hutch_review *review = NULL;
        hutch_change change;
        hutch_error err = {0};
        char command[256];
        hutch_box *box;

        if (!mkdtemp(directory))
                return 1;
        snprintf(command, sizeof(command), "chmod 755 %s; echo old >%s/host; echo g >%s/gone", directory, directory,
                 directory);
        ok(system(command) == 0, "a directory");
        box = open_box(context, "cow", false);
        ok(hutch_box_review(box, &review, &err) < 0, "no review before the first run: %s", err.message);
        runs(box);
        told(box, "echo 1 >one", "+one");
        MUST(hutch_box_review(box, &review, &tap_err));
        ok(hutch_review_change(review, 0, &change) && !strcmp(change.short_path, "one") &&
                   !hutch_review_change(review, 1, &change),
           "since the beginning there is one change");
        ok(hutch_review_discard(review, NULL, &err) < 0 && hutch_review_apply(review, NULL, 0, NULL, NULL, &err) < 0,
           "an open box is not applied or discarded: %s", err.message);
        hutch_review_close(review);
        told(box, "echo 2 >one", "~one");
        hutch_box_close(box);

        box = open_box(context, "rw", true);
        runs(box);
        hutch_box_close(box);
        box = open_box(context, "rw", false);
        hutch_result *r = run_text(box, "echo >x; rm x");
        ok(!r->created && !r->modified && !r->deleted, "without track nobody looks");
        hutch_result_free(r);
        hutch_box_close(box);
        hutch_context_free(context);
        snprintf(command, sizeof(command), "rm -rf %s", directory);
        ok(system(command) == 0, "gone");
        return done_testing();
}
