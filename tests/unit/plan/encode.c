/* A plan as bytes and back, and what a damaged one does: nothing. */
#include "base/buf.h"
#include "base/strv.h"
#include "fixture.h"
#include "unit.h"

static void encode(const struct fixture *f, struct buf *b) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_error err = {0};

        unit_check(fixture_plan(f, &plan, &err) >= 0, "no plan: %s", err.message);
        assert_int_equal(plan_encode(plan, b), 0);
}

/* In memory of exactly its size, so that ASan sees the first byte too far. */
static int decode_copy(const void *data, size_t len, struct plan **ret) {
        _cleanup_(freep) void *copy = malloc(len ? len : 1);

        memcpy(copy, data, len);
        return plan_decode(copy, len, ret);
}

/* A plan that was taken must be one that can be used: explain walks all of it. */
static void use(const struct plan *plan) {
        _cleanup_(freep) char *words = NULL, *json = NULL;

        assert_int_equal(plan_explain(plan, NULL, &words), 0);
        plan_explain_json(plan, NULL, &json);
}

static void test_round(void **state) {
        _cleanup_(plan_freep) struct plan *plan = NULL, *back = NULL;
        _cleanup_(buf_done) struct buf b = {0}, again = {0};
        _cleanup_(freep) char *before = NULL, *after = NULL;

        assert_int_equal(fixture_plan(*state, &plan, NULL), 0);
        assert_int_equal(plan_encode(plan, &b), 0);
        assert_int_equal(decode_copy(b.data, b.len, &back), 0);
        before = fixture_print(plan);
        after = fixture_print(back);
        unit_same("the plan", after, before);
        assert_int_equal(back->timeout_ms, plan->timeout_ms);
        assert_int_equal(strv_length(back->env), strv_length(plan->env));
        for (size_t i = 0; plan->env[i]; i++)
                unit_same("a variable", back->env[i], plan->env[i]);
        assert_int_equal(plan_encode(back, &again), 0);
        assert_int_equal(again.len, b.len);
        assert_memory_equal(again.data, b.data, b.len);
}

/* Frozen layers go where the overlay is made, and to no other place that shows it. */
static void test_below(void **state _unused_) {
        const struct fixture f = {"", {"workspace=cow", "cow=/data"}};
        static char *old[] = {(char *) "/layers/old/0", NULL},
                    *both[] = {(char *) "/layers/new/1", (char *) "/layers/old/1", NULL}, **below[] = {old, both};
        _cleanup_(plan_freep) struct plan *plan = NULL, *back = NULL, *draft = NULL;
        _cleanup_(buf_done) struct buf b = {0};
        _cleanup_(freep) char *words = NULL, *json = NULL;
        size_t overlays = 0, seen = 0;

        assert_int_equal(fixture_plan(&f, &draft, NULL), 0);
        assert_int_equal(draft->n_layers, 2);
        assert_int_equal(plan_with_layers(draft, &(struct plan_layers){.n = 2, .below = below}, &plan), 0);
        assert_int_equal(plan_n_below(draft, NULL), 0); /* a plan is not changed */
        assert_int_equal(plan_n_below(plan, NULL), 3);
        assert_int_equal(plan_encode(plan, &b), 0);
        assert_int_equal(decode_copy(b.data, b.len, &back), 0);
        for (size_t i = 0; i < back->n_steps; i++) {
                const struct step *s = &back->steps[i];

                assert_int_equal(plan_n_below(back, s), seen);
                seen += strv_length(s->below);
                if (s->kind != STEP_COW || s->text) {
                        assert_int_equal(strv_length(s->below), 0);
                        continue;
                }
                overlays++;
                assert_int_equal(strv_length(s->below), s->layer == 1 ? 2 : 1);
                unit_same("the topmost", s->below[0], s->layer == 1 ? "/layers/new/1" : "/layers/old/0");
        }
        assert_int_equal(overlays, 2);
        assert_int_equal(plan_explain(back, NULL, &words), 0);
        assert_non_null(strstr(words, "with 2 layers"));
        assert_non_null(strstr(words, "with 1 layer"));
        assert_int_equal(plan_explain_json(back, NULL, &json), 0);
        assert_non_null(strstr(json, "/layers/new/1"));
}

static void test_truncated(void **state) {
        _cleanup_(buf_done) struct buf b = {0};

        encode(*state, &b);
        for (size_t n = 0; n < b.len; n++) {
                struct plan *plan = NULL;
                int r = decode_copy(b.data, n, &plan);

                unit_check(r == -EBADMSG && !plan, "cut to %zu of %zu bytes it was taken", n, b.len);
        }
}

static void test_longer(void **state) {
        _cleanup_(buf_done) struct buf b = {0};
        struct plan *plan = NULL;

        encode(*state, &b);
        buf_put(&b, "", 1);
        assert_int_equal(decode_copy(b.data, b.len, &plan), -EBADMSG);
        assert_null(plan);
}

/* Every byte, changed in each of its bits, to its neighbours and to the ends: those are what lengths and counts break
 * at. */
static void test_corrupted(void **state) {
        _cleanup_(buf_done) struct buf b = {0};
        size_t taken = 0;

        encode(*state, &b);
        for (size_t i = 0; i < b.len; i++) {
                const uint8_t was = b.data[i];
                const uint8_t values[] = {was ^ 1,
                                          was ^ 2,
                                          was ^ 4,
                                          was ^ 8,
                                          was ^ 16,
                                          was ^ 32,
                                          was ^ 64,
                                          was ^ 128,
                                          0,
                                          0xff,
                                          (uint8_t) (was + 1),
                                          (uint8_t) (was - 1)};

                for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
                        _cleanup_(plan_freep) struct plan *plan = NULL;
                        int r;

                        b.data[i] = values[v];
                        r = decode_copy(b.data, b.len, &plan);
                        unit_check(r == 0 || (r == -EBADMSG && !plan), "byte %zu as %u: %d", i, values[v], r);
                        if (r == 0 && taken++ % 8 == 0)
                                use(plan); /* which costs ten times as much as to decode it */
                }
                b.data[i] = was;
        }
        assert_true(taken > 0); /* letters of a path may change */
}

/* Plans that no encoder of ours makes, each wrong in one way. */
static void lose_origin(struct plan *p) {
        size_t n = strv_length(p->env_origins);

        free(p->env_origins[n - 1]);
        p->env_origins[n - 1] = NULL;
}
static void lose_origins(struct plan *p) {
        strv_free(p->env_origins);
        p->env_origins = NULL;
}
static void bare_variable(struct plan *p) {
        p->env[0][strcspn(p->env[0], "=")] = 0;
}
static void lose_argv(struct plan *p) {
        strv_free(p->argv);
        p->argv = NULL;
}
static void lose_backend(struct plan *p) {
        free(take_ptr(p->backend));
}
static void lose_user(struct plan *p) {
        free(take_ptr(p->user));
}
static void lose_home(struct plan *p) {
        free(take_ptr(p->home));
}
static void lose_cwd(struct plan *p) {
        free(take_ptr(p->cwd));
}
static void unknown_kind(struct plan *p) {
        p->steps[0].kind = (enum step_kind)(STEP_LAST + 1);
}
static void huge_kind(struct plan *p) {
        p->steps[0].kind = (enum step_kind) - 1;
}
static void unknown_enforcement(struct plan *p) {
        p->enforced[HUTCH_G_DISK] = (enum hutch_enforcement)(HUTCH_DEGRADED + 1);
}
static void lose_dest(struct plan *p) {
        free(take_ptr(p->steps[0].dest));
}
static void lose_step_origin(struct plan *p) {
        free(take_ptr(p->steps[0].origin));
}
static void lose_source(struct plan *p) {
        free(take_ptr(p->steps[0].source));
}
static void lose_lower(struct plan *p) {
        p->steps[0].kind = STEP_COW;
        p->n_layers = 1;
        free(take_ptr(p->steps[0].source));
}
static void uncounted_layer(struct plan *p) {
        p->steps[0].kind = STEP_COW;
        p->steps[0].layer = p->n_layers;
}
static void uncounted_layers(struct plan *p) {
        p->n_layers = UINT32_MAX;
}
static void below_a_bind(struct plan *p) {
        strv_push(&p->steps[0].below, "/layer");
}
static void below_by_no_path(struct plan *p) {
        p->steps[0].kind = STEP_COW;
        p->n_layers = 1;
        strv_push(&p->steps[0].below, "layer");
}
static void below_the_same(struct plan *p) {
        p->steps[0].kind = STEP_COW;
        p->n_layers = 1;
        p->steps[0].text = strdup("/elsewhere");
        strv_push(&p->steps[0].below, "/layer");
}
static void lose_text(struct plan *p) {
        p->steps[0].kind = STEP_FILE;
}
static void lose_target(struct plan *p) {
        p->steps[0].kind = STEP_SYMLINK;
}

static const struct broken_row {
        const char *name;
        void (*break_it)(struct plan *p);
} broken_rows[] = {
        {"an origin too few", lose_origin},
        {"no origins", lose_origins},
        {"a variable without an equals sign", bare_variable},
        {"no command", lose_argv},
        {"no backend", lose_backend},
        {"no user", lose_user},
        {"no home", lose_home},
        {"no directory", lose_cwd},
        {"a step of an unknown kind", unknown_kind},
        {"a step of a huge kind", huge_kind},
        {"an unknown enforcement", unknown_enforcement},
        {"a step without a destination", lose_dest},
        {"a step without an origin", lose_step_origin},
        {"a bind without a source", lose_source},
        {"a copy-on-write directory without a source", lose_lower},
        {"a layer past the last", uncounted_layer},
        {"more layers than any box has", uncounted_layers},
        {"a layer below what has none", below_a_bind},
        {"a layer below by a name that is no path", below_by_no_path},
        {"a layer below what is shown elsewhere", below_the_same},
        {"a file without text", lose_text},
        {"a link without a target", lose_target},
};

static void test_broken(void **state) {
        const struct broken_row *row = *state;
        _cleanup_(plan_freep) struct plan *plan = NULL, *back = NULL;
        _cleanup_(buf_done) struct buf b = {0};

        assert_int_equal(fixture_plan(&golden_cases[0], &plan, NULL), 0);
        assert_int_equal(plan->steps[0].kind, STEP_BIND);
        row->break_it(plan);
        assert_int_equal(plan_encode(plan, &b), 0);
        assert_int_equal(decode_copy(b.data, b.len, &back), -EBADMSG);
        assert_null(back);
}

static void test_magic(void **state _unused_) {
        _cleanup_(buf_done) struct buf b = {0};
        struct plan *plan = NULL;

        encode(&golden_cases[0], &b);
        for (int i = 0; i < 4; i++) {
                b.data[i] ^= 1;
                assert_int_equal(decode_copy(b.data, b.len, &plan), -EBADMSG);
                b.data[i] ^= 1;
        }
        assert_int_equal(decode_copy("", 0, &plan), -EBADMSG);
}

/* Plans that have all kinds of steps between them: a hundred thousand corruptions of each of the others would find
 * nothing more. */
static bool is_sample(const char *name) {
        static const char *const samples[] = {"as-user", "root-caller-as-root", "isolation-none-degraded", "cow-paths"};

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
                if (streq(name, samples[i]))
                        return true;
        return false;
}

int main(void) {
        static const struct {
                const char *prefix;
                unit_fn fn;
        } kinds[] = {{"round trip", test_round},
                     {"every truncation", test_truncated},
                     {"every corruption", test_corrupted},
                     {"one byte more", test_longer}};

        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                for (size_t i = 0; i < n_golden_cases; i++) {
                        char name[128];

                        if (kinds[k].fn == test_corrupted && !is_sample(golden_cases[i].name))
                                continue;
                        snprintf(name, sizeof(name), "%s: %s", kinds[k].prefix, golden_cases[i].name);
                        unit_add(name, kinds[k].fn, &golden_cases[i]);
                }
        unit_add_rows(broken_rows, test_broken);
        unit_add("layers below", test_below, NULL);
        unit_add("another magic", test_magic, NULL);
        return unit_run("plan/encode");
}
