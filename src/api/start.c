/* Runs that the caller does not wait for: a thread of the library waits, and a descriptor becomes readable at the end.
 *
 * The thread does what hutch_box_run() does, with every signal blocked, so that those of the program are delivered to
 * its own threads. */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "api.h"

struct hutch_run {
        hutch_box *box;
        struct hutch_request request;
        pthread_t thread;
        int fd;
        int status;
        struct hutch_result *result;
        struct hutch_error error;
};

static void *run_thread(void *data) {
        struct hutch_run *run = data;

        run->status = hutch_box_run(run->box, &run->request, &run->result, &run->error);
        box_leave(run->box);
        eventfd_write(run->fd, 1);
        return NULL;
}

static int start_thread(struct hutch_run *run) {
        sigset_t all, before;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&run->thread, NULL, run_thread, run);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

int hutch_box_start(hutch_box *box, const hutch_request *request, hutch_run **ret, hutch_error *err) {
        struct hutch_run *run;
        int r;

        if (!box)
                return api_null(err, __func__, "box");
        if (!request)
                return api_null(err, __func__, "request");
        if (!ret)
                return api_null(err, __func__, "ret");
        if (box->context && box->context->kind == HUTCH_WARDEN_SELF)
                return error_set(err, HUTCH_E_USAGE, EINVAL, "hutch_box_start needs a context with a warden process");
        run = calloc(1, sizeof(*run));
        if (!run)
                return error_oom(err);
        run->box = box;
        run->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (run->fd < 0) {
                r = error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot start a run: %s", errno_text(errno));
                free(run);
                return r;
        }
        request_read(request, &run->request);
        run->request.struct_size = sizeof(run->request);
        box_enter(box); /* so that hutch_box_close() waits from now on */
        r = start_thread(run);
        if (r < 0) {
                box_leave(box);
                close(run->fd);
                free(run);
                return error_set(err, HUTCH_E_SETUP_FAILED, r, "cannot start a thread: %s", errno_text(-r));
        }
        *ret = run;
        return 0;
}

int hutch_run_fd(const hutch_run *run) {
        return run ? run->fd : -EINVAL;
}

int hutch_run_finish(hutch_run *run, hutch_result **ret, hutch_error *err) {
        int r;

        if (!run)
                return api_null(err, __func__, "run");
        pthread_join(run->thread, NULL);
        r = run->status;
        if (r < 0 && err)
                *err = run->error;
        if (ret)
                *ret = take_ptr(run->result);
        hutch_result_free(run->result);
        close(run->fd);
        free(run);
        return r;
}
