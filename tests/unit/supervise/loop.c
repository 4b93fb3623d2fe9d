/* The event loop: watches that change while events are handed out, deadlines in their order. */
#include "supervise/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "unit.h"

static struct loop *fresh(void) {
        struct loop *loop = NULL;

        assert_int_equal(loop_new(&loop), 0);
        return loop;
}

struct pipe_watch {
        int ends[2];
        struct watch *watch;
        int calls;
        uint32_t events;
        struct pipe_watch *victim; /* removed by the callback */
};

static void on_event(void *data, uint32_t events) {
        struct pipe_watch *p = data;
        char c;

        p->calls++;
        p->events = events;
        if (events & EPOLLIN)
                assert_int_equal(read(p->ends[0], &c, 1), 1);
        if (p->victim)
                watch_remove(&p->victim->watch);
}

static void pipe_open(struct pipe_watch *p, struct loop *loop) {
        *p = (struct pipe_watch){0};
        assert_int_equal(pipe2(p->ends, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(loop_watch(loop, p->ends[0], EPOLLIN, on_event, p, &p->watch), 0);
}

static void pipe_close(struct pipe_watch *p) {
        watch_remove(&p->watch);
        close(p->ends[0]);
        if (p->ends[1] >= 0)
                close(p->ends[1]);
}

static void test_watch(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct pipe_watch p;

        pipe_open(&p, loop);
        assert_int_equal(write(p.ends[1], "ab", 2), 2);
        assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(p.calls, 1);
        assert_true(p.events & EPOLLIN);
        assert_int_equal(loop_turn(loop), 0); /* still readable: told again */
        assert_int_equal(p.calls, 2);
        close(p.ends[1]);
        p.ends[1] = -1;
        assert_int_equal(loop_turn(loop), 0);
        assert_true(p.events & EPOLLHUP);
        pipe_close(&p);
        watch_remove(&p.watch); /* of nothing: fine */
}

static void note(void *data) {
        int *calls = data;

        (*calls)++;
}

static void test_events_change(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct pipe_watch p;
        int fired = 0;
        struct timer timer = {.fire = note, .data = &fired};

        pipe_open(&p, loop);
        assert_int_equal(watch_set_events(p.watch, 0), 0);
        assert_int_equal(write(p.ends[1], "a", 1), 1);
        timer_set(loop, &timer, 5);
        while (!fired)
                assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(p.calls, 0);
        assert_int_equal(watch_set_events(p.watch, EPOLLIN), 0);
        assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(p.calls, 1);
        pipe_close(&p);
}

/* Two are ready in one round; whichever is called first takes the other's watch away, which must not be called any
 * more. */
static void test_remove_another(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct pipe_watch a, b;

        pipe_open(&a, loop);
        pipe_open(&b, loop);
        a.victim = &b;
        b.victim = &a;
        assert_int_equal(write(a.ends[1], "x", 1), 1);
        assert_int_equal(write(b.ends[1], "x", 1), 1);
        assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(a.calls + b.calls, 1);
        pipe_close(&a);
        pipe_close(&b);
}

static void test_remove_itself(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct pipe_watch p;
        int fired = 0;
        struct timer timer = {.fire = note, .data = &fired};

        pipe_open(&p, loop);
        p.victim = &p;
        assert_int_equal(write(p.ends[1], "xx", 2), 2);
        assert_int_equal(loop_turn(loop), 0);
        timer_set(loop, &timer, 2);
        while (!fired)
                assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(p.calls, 1);
        pipe_close(&p);
}

static void test_watch_fails(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct watch *watch = NULL;
        char path[4200];
        int fd;

        snprintf(path, sizeof(path), "%s/regular", unit_folder());
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(loop_watch(loop, fd, EPOLLIN, on_event, NULL, &watch), -EPERM);
        close(fd);
        assert_int_equal(loop_watch(loop, fd, EPOLLIN, on_event, NULL, &watch), -EBADF);
        assert_null(watch);
}

/* Timers write their letter into a row. */
struct row {
        char text[32];
        size_t n;
};

struct letter {
        struct timer timer;
        struct row *row;
        char letter;
        struct loop *loop;
        struct letter *clears, *sets;
        unsigned again; /* sets itself so many times */
};

static void write_letter(void *data) {
        struct letter *l = data;

        l->row->text[l->row->n++] = l->letter;
        if (l->clears)
                timer_clear(l->loop, &l->clears->timer);
        if (l->sets)
                timer_set(l->loop, &l->sets->timer, 1);
        if (l->again) {
                l->again--;
                timer_set(l->loop, &l->timer, 1);
        }
}

static struct letter letter(struct loop *loop, struct row *row, char c) {
        return (struct letter){.timer = {.fire = write_letter}, .row = row, .letter = c, .loop = loop};
}

static void arm(struct letter *l, uint64_t in_ms) {
        l->timer.data = l;
        timer_set(l->loop, &l->timer, in_ms);
}

static void turn_until(struct loop *loop, struct row *row, size_t n) {
        for (int i = 0; i < 1000 && row->n < n; i++)
                assert_int_equal(loop_turn(loop), 0);
}

static void test_timer_order(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter a = letter(loop, &row, 'a'), b = letter(loop, &row, 'b'), c = letter(loop, &row, 'c'),
                      d = letter(loop, &row, 'd');

        arm(&d, 0); /* first: on a slow machine the others may be due once it is set */
        arm(&c, 500);
        arm(&a, 20);
        arm(&b, 200);
        turn_until(loop, &row, 4);
        unit_same("the order", row.text, "dabc");
        assert_int_equal(a.timer.at_ms, 0); /* fired is not set */
}

static void test_timer_same_time(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter l[3] = {letter(loop, &row, 'a'), letter(loop, &row, 'b'), letter(loop, &row, 'c')};

        for (int i = 0; i < 3; i++)
                arm(&l[i], 0);
        turn_until(loop, &row, 3);
        unit_same("first set, first fired", row.text, "abc");
}

static void test_timer_moves(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter a = letter(loop, &row, 'a'), b = letter(loop, &row, 'b');

        arm(&a, 1);
        arm(&b, 5);
        arm(&a, 200); /* set again: moved, not doubled */
        turn_until(loop, &row, 2);
        unit_same("the order", row.text, "ba");
}

static void test_timer_clear(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter a = letter(loop, &row, 'a'), b = letter(loop, &row, 'b'), c = letter(loop, &row, 'c');

        a.clears = &b;
        arm(&a, 1);
        arm(&b, 1);
        arm(&c, 10);
        turn_until(loop, &row, 2);
        unit_same("a cleared one is silent", row.text, "ac");
        timer_clear(loop, &b.timer); /* of what is not set: fine */
}

static void test_timer_sets(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter a = letter(loop, &row, 'a'), b = letter(loop, &row, 'b');

        a.again = 2;
        b.timer.data = &b;
        a.sets = &b;
        arm(&a, 0);
        turn_until(loop, &row, 4);
        assert_true(row.n >= 4);
        assert_int_equal(row.text[0], 'a');
        assert_int_equal(strcspn(row.text, "b") < row.n, 1);
}

/* No timer fires before its time. */
static void test_timer_waits(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        int fired = 0;
        struct timer timer = {.fire = note, .data = &fired};
        uint64_t start = clock_now_us();

        timer_set(loop, &timer, 20);
        while (!fired)
                assert_int_equal(loop_turn(loop), 0);
        assert_true(clock_now_us() / 1000 - start / 1000 >= 20);
}

/* A limit of 580 million years is written as easily as one of a second: it must not be over at once. */
static void test_timer_far(void **state) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct row row = {0};
        struct letter far = letter(loop, &row, 'f'), near = letter(loop, &row, 'n');

        arm(&far, *(const uint64_t *) *state);
        arm(&near, 5);
        turn_until(loop, &row, 1);
        arm(&near, 1);
        turn_until(loop, &row, 2);
        unit_same("what fired", row.text, "nn");
        timer_clear(loop, &far.timer);
}

static void on_alarm(int signal _unused_) {
}

/* A signal ends the wait early and is no error. */
static void test_interrupted(void **state _unused_) {
        _cleanup_(loop_freep) struct loop *loop = fresh();
        struct sigaction action = {.sa_handler = on_alarm}, old;
        /* More than one: the first may come before the wait. */
        struct itimerval soon = {.it_value.tv_usec = 2000, .it_interval.tv_usec = 50000}, off = {0};
        int fired = 0;
        struct timer timer = {.fire = note, .data = &fired};

        sigaction(SIGALRM, &action, &old);
        timer_set(loop, &timer, 10000);
        setitimer(ITIMER_REAL, &soon, NULL);
        assert_int_equal(loop_turn(loop), 0);
        assert_int_equal(fired, 0);
        setitimer(ITIMER_REAL, &off, NULL);
        sigaction(SIGALRM, &old, NULL);
        timer_clear(loop, &timer);
}

int main(void) {
        static const uint64_t most = UINT64_MAX, far = UINT64_MAX / 2, years = 1000ull * 3600 * 24 * 366 * 100;

        unit_add("a watch", test_watch, NULL);
        unit_add("a watch's events change", test_events_change, NULL);
        unit_add("a watch removed by another", test_remove_another, NULL);
        unit_add("a watch removed by itself", test_remove_itself, NULL);
        unit_add("what cannot be watched", test_watch_fails, NULL);
        unit_add("timers fire in order", test_timer_order, NULL);
        unit_add("timers of one time", test_timer_same_time, NULL);
        unit_add("a timer set again", test_timer_moves, NULL);
        unit_add("a timer cleared by another", test_timer_clear, NULL);
        unit_add("timers set by timers", test_timer_sets, NULL);
        unit_add("a timer waits", test_timer_waits, NULL);
        unit_add("a timer a century away", test_timer_far, &years);
        unit_add("a timer very far away", test_timer_far, &far);
        unit_add("a timer as far away as can be", test_timer_far, &most);
        unit_add("a signal", test_interrupted, NULL);
        loop_free(NULL);
        return unit_run("supervise/loop");
}
