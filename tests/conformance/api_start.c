/* Runs that the caller does not wait for, and files of a box. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static void test_start(hutch_box *box) {
        const char *const argv[] = {"sh", "-c", "sleep 0.3; echo done; exit 3", NULL};
        hutch_request request = {.struct_size = sizeof(request), .argv = argv};
        hutch_result *result = NULL;
        hutch_run *run;
        struct pollfd p = {.events = POLLIN};

        MUST(hutch_box_start(box, &request, &run, &tap_err));
        p.fd = hutch_run_fd(run);
        ok(poll(&p, 1, 0) == 0, "it is not over yet");
        ok(poll(&p, 1, 20000) == 1, "the descriptor becomes readable");
        MUST(hutch_run_finish(run, &result, &tap_err));
        ok(result->exit_code == 3 && !strcmp(result->output[1], "done\n"), "the result is that of the run");
        hutch_result_free(result);
}

static void test_files(hutch_box *box) {
        static const char bytes[] = "a\0b\xff\n";
        size_t len = 0;
        char *text = NULL;

        MUST(hutch_box_write_file(box, "file", bytes, sizeof(bytes), &tap_err));
        MUST(hutch_box_read_file(box, "file", &text, &len, &tap_err));
        ok(len == sizeof(bytes) && !memcmp(text, bytes, len), "what was written is read");
        hutch_free(text);
        text = NULL;
        ok(hutch_box_read_file(box, "none", &text, &len, &tap_err) < 0 && strstr(tap_err.message, "No such file"),
           "a missing file: %s", tap_err.message);
        /* A link of the box's making means what it means inside: the host's file of that name is not there. */
        ok(symlink("/root/outside-of-the-box", "link") == 0 &&
                   hutch_box_read_file(box, "link", &text, &len, &tap_err) < 0,
           "a link does not lead out");
}

int main(void) {
        char place[] = "/tmp/api_start.XXXXXX";
        hutch_policy *policy;
        hutch_box *box;

        if (!mkdtemp(place) || chdir(place) < 0)
                return 1;
        MUST(hutch_policy_new(&policy));
        MUST(hutch_policy_set_workspace(policy, place, HUTCH_WORKSPACE_RW, &tap_err));
        MUST(hutch_box_open(policy, NULL, &box, &tap_err));
        test_start(box);
        test_files(box);
        hutch_box_close(box);
        hutch_policy_free(policy);
        unlink("file");
        unlink("link");
        rmdir(place);
        return done_testing();
}
