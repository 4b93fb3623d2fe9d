/* What a plan's steps show in the end: asked path by path, as a box would see it.
 *
 * The golden files hold the steps; here their meaning is judged, by laying them over each other in order: the last step
 * that covers a path says what stands there. */
#include "base/path.h"
#include "fixture.h"
#include "unit.h"

enum seen { NOTHING, OWN, READ, WRITE, HIDDEN, DEVICE, LAYER };

static const char *const seen_names[] = {"nothing", "the box's own", "the host's, read-only",    "the host's, writable",
                                         "hidden",  "a device",      "the host's, copy-on-write"};

/* *source becomes the host path behind it. */
static enum seen look(const struct plan *plan, const char *path, char *source, size_t room) {
        enum seen seen = NOTHING;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *s = &plan->steps[i];

                if (!path_is_beneath(path, s->dest))
                        continue;
                switch (s->kind) {
                case STEP_BIND:
                        seen = s->flags & STEP_DEVICES ? DEVICE : s->flags & STEP_WRITABLE ? WRITE : READ;
                        snprintf(source, room, "%s%s", s->source, path_tail(path, s->dest));
                        break;
                case STEP_COW:
                        seen = s->flags & STEP_OWN ? OWN : LAYER;
                        snprintf(source, room, "%s%s", s->source, path_tail(path, s->dest));
                        break;
                case STEP_HIDE:
                        seen = HIDDEN;
                        break;
                case STEP_SEAL:
                case STEP_PIN:
                case STEP_SYMLINK:
                        break;
                default:
                        seen = OWN;
                }
        }
        return seen;
}

static const struct look_row {
        struct fixture f;
        struct {
                const char *path;
                enum seen seen;
                const char *source;
        } looks[7];
} rows[] = {
        {{"run"},
         {{"/home/ann/src/app/x", WRITE, "/home/ann/src/app/x"},
          {"/workspace/app/x", WRITE, "/home/ann/src/app/x"},
          {"/home/ann/.ssh/id_rsa", OWN},
          {"/usr/bin/env", READ, "/usr/bin/env"},
          {"/etc/passwd", READ, "/etc/passwd"},
          {"/srv/x", NOTHING},
          {"/dev/null", DEVICE, "/dev/null"}}},
        {{"the system under layers", {"cow=/"}},
         {{"/home/ann/src/app/x", LAYER, "/home/ann/src/app/x"},
          {"/home/ann/.ssh/id_rsa", OWN},
          {"/home/bob/x", NOTHING},
          {"/usr/bin/env", LAYER, "/usr/bin/env"},
          {"/var/lib/dpkg/status", LAYER, "/var/lib/dpkg/status"},
          {"/var/log/syslog", LAYER, "/home/ann/.cache/hutch/skeleton/0123456789abcdef/var/log/syslog"},
          {"/srv/x", NOTHING}}},
        {{"the system under layers, one with mounts inside", {"cow=/"}, .mounted = "/opt"},
         {{"/usr/bin/env", LAYER, "/usr/bin/env"},
          {"/opt/file", LAYER, "/opt/file"},
          {"/opt/sdk/x", LAYER, "/opt/sdk/x"},
          {"/opt/data/x", LAYER, "/opt/data/x"}}},
        {{"the system under layers, unmerged", {"cow=/"}, .unmerged = true},
         {{"/bin/sh", LAYER, "/bin/sh"}, {"/nix/store", READ, "/nix/store"}}},
        {{"the system under layers, the workspace as it was said", {"cow=/", "workspace=ro"}},
         {{"/home/ann/src/app/x", READ, "/home/ann/src/app/x"}}},
        {{"read-only workspace", {"workspace=ro"}},
         {{"/home/ann/src/app/x", READ, "/home/ann/src/app/x"}, {"/workspace/app/x", READ, "/home/ann/src/app/x"}}},
        {{"as user: at /workspace only", {"as=user"}},
         {{"/workspace/x", WRITE, "/home/ann/src/app/x"},
          {"/home/ann/src/app/x", NOTHING},
          {"/home/user/.bashrc", OWN},
          {"/etc/passwd", OWN},
          {"/etc/fstab", READ, "/etc/fstab"}}},
        {{"ro in the workspace holds at both places", {"ro=vendor"}},
         {{"/home/ann/src/app/vendor/x", READ, "/home/ann/src/app/vendor/x"},
          {"/workspace/app/vendor/x", READ, "/home/ann/src/app/vendor/x"},
          {"/home/ann/src/app/x", WRITE, "/home/ann/src/app/x"}}},
        {{"ro in the workspace, as user", {"ro=vendor", "as=user"}},
         {{"/workspace/vendor/x", READ, "/home/ann/src/app/vendor/x"}, {"/workspace/x", WRITE, "/home/ann/src/app/x"}}},
        {{"rw in ro in rw", {"ro=vendor", "rw=vendor/mine"}},
         {{"/workspace/app/vendor/mine/x", WRITE, "/home/ann/src/app/vendor/mine/x"},
          {"/workspace/app/vendor/x", READ, "/home/ann/src/app/vendor/x"},
          {"/home/ann/src/app/vendor/mine/x", WRITE, "/home/ann/src/app/vendor/mine/x"}}},
        {{"a later ro covers an earlier rw", {"rw=vendor/mine", "ro=vendor"}},
         {{"/workspace/app/vendor/mine/x", READ, "/home/ann/src/app/vendor/mine/x"},
          {"/home/ann/src/app/vendor/mine/x", READ, "/home/ann/src/app/vendor/mine/x"}}},
        {{"a destination is the only place", {"ro=/data:/mnt/d"}},
         {{"/mnt/d/x", READ, "/data/x"}, {"/data/x", NOTHING}}},
        {{"hide holds at both places", {"hide=.env"}},
         {{"/home/ann/src/app/.env", HIDDEN},
          {"/workspace/app/.env", HIDDEN},
          {"/workspace/app/.envrc", WRITE, "/home/ann/src/app/.envrc"}}},
        {{"hide of what is not there yet", {"hide=.secret"}},
         {{"/home/ann/src/app/.secret", HIDDEN}, {"/workspace/app/.secret", HIDDEN}}},
        {{"hide at a destination", {"ro=/data:/mnt/d", "hide=/data/out"}},
         {{"/mnt/d/out/x", HIDDEN}, {"/mnt/d/x", READ, "/data/x"}}},
        /* What was asked to be hidden is hidden, also where it was attached from within. */
        {{"hide of what the workspace lies in", {"hide=/home/ann/src"}},
         {{"/home/ann/src/app/x", HIDDEN}, {"/workspace/app/x", HIDDEN}}},
        {{"hide of what an attached path lies in", {"ro=/data/out:/mnt/o", "hide=/data"}}, {{"/mnt/o/x", HIDDEN}}},
        {{"hide of a directory with mounts inside",
          {"workspace=cow", "hide=vendor"},
          .mounts = {"/home/ann/src/app/vendor/mine"},
          .beside = {"/home/ann/src/app/vendor"}},
         {{"/home/ann/src/app/vendor/mine/x", HIDDEN}, {"/workspace/app/vendor/x", HIDDEN}}},
        {{"hide of a system directory by its link", {"hide=/bin"}},
         {{"/usr/bin/env", HIDDEN}, {"/usr/lib/x", READ, "/usr/lib/x"}}},
        {{"a path attached after it was hidden", {"hide=vendor", "ro=vendor/mine"}},
         {{"/workspace/app/vendor/x", HIDDEN},
          {"/workspace/app/vendor/mine/x", READ, "/home/ann/src/app/vendor/mine/x"}}},
        {{"a tmpfs in the workspace", {"tmpfs=build"}},
         {{"/workspace/app/build/x", OWN},
          {"/home/ann/src/app/build/x", OWN},
          {"/workspace/app/x", WRITE, "/home/ann/src/app/x"}}},
        {{"a device by a link stands where it was named", {"dev=/dev/cam"}}, {{"/dev/cam", DEVICE, "/dev/video0"}}},
        {{"a link in the workspace holds at both its ends", {"ro=inner", "allow-degraded"}},
         {{"/home/ann/src/app/vendor/x", READ, "/home/ann/src/app/vendor/x"},
          {"/workspace/app/vendor/x", READ, "/home/ann/src/app/vendor/x"},
          {"/home/ann/src/app/inner/x", READ, "/home/ann/src/app/vendor/x"}}},
        {{"what is hidden stays hidden where its directory is attached again",
          {"hide=vendor/mine/key", "rw=vendor:/mnt/v", "rw=."}},
         {{"/mnt/v/mine/key", HIDDEN},
          {"/workspace/app/vendor/mine/key", HIDDEN},
          {"/home/ann/src/app/vendor/mine/key", HIDDEN},
          {"/mnt/v/x", WRITE, "/home/ann/src/app/vendor/x"}}},
        {{"hidden before it is there, then attached again", {"hide=vendor/none", "rw=vendor:/mnt/v"}},
         {{"/mnt/v/none", HIDDEN}}},
        {{"the resolver's file in /run", .resolv_conf = "/run/systemd/resolve/stub-resolv.conf"},
         {{"/run/systemd/resolve/stub-resolv.conf", READ, "/run/systemd/resolve/stub-resolv.conf"},
          {"/run/docker.sock", OWN}}},
        {{"a home in the system's directories moves", .home = "/usr/home/ann"},
         {{"/usr/home/ann/x", READ, "/usr/home/ann/x"}, {"/home/user/x", OWN}}},
        {{"a workspace in /tmp", {"dir=/tmp/job"}},
         {{"/tmp/job/x", WRITE, "/tmp/job/x"}, {"/workspace/job/x", WRITE, "/tmp/job/x"}, {"/tmp/x", OWN}}},
        {{"a copy-on-write workspace", {"workspace=cow", "hide=.env", "ro=vendor"}},
         {{"/workspace/app/x", LAYER, "/home/ann/src/app/x"},
          {"/home/ann/src/app/x", LAYER, "/home/ann/src/app/x"},
          {"/workspace/app/.env", HIDDEN},
          {"/home/ann/src/app/.env", HIDDEN},
          {"/workspace/app/vendor/x", READ, "/home/ann/src/app/vendor/x"}}},
        {{"a copy-on-write path in the workspace", {"cow=vendor"}},
         {{"/workspace/app/vendor/x", LAYER, "/home/ann/src/app/vendor/x"},
          {"/home/ann/src/app/vendor/x", LAYER, "/home/ann/src/app/vendor/x"}}},
        {{"hidden, then attached again copy-on-write", {"hide=vendor/mine/key", "cow=vendor:/mnt/v"}},
         {{"/mnt/v/mine/key", HIDDEN}, {"/mnt/v/x", LAYER, "/home/ann/src/app/vendor/x"}}},
        {{"hide of what a copy-on-write path lies in", {"cow=/data/out:/mnt/o", "hide=/data"}}, {{"/mnt/o/x", HIDDEN}}},
        {{"no workspace", {"workspace=none"}}, {{"/workspace/x", OWN}, {"/home/ann/src/app", OWN}}},
};

static void test(void **state) {
        const struct look_row *row = *state;
        _cleanup_(plan_freep) struct plan *plan = NULL;
        struct hutch_error err = {0};

        unit_check(fixture_plan(&row->f, &plan, &err) >= 0, "%s", err.message);
        for (size_t i = 0; i < ARRAY_SIZE(row->looks) && row->looks[i].path; i++) {
                char source[4096] = "";
                enum seen seen = look(plan, row->looks[i].path, source, sizeof(source));

                unit_check(seen == row->looks[i].seen, "%s: is %s%s%s, should be %s", row->looks[i].path,
                           seen_names[seen], seen == READ || seen == WRITE ? ", from " : "",
                           seen == READ || seen == WRITE ? source : "", seen_names[row->looks[i].seen]);
                if (row->looks[i].source)
                        unit_same(row->looks[i].path, source, row->looks[i].source);
        }
}

/* Whatever is asked for, the home, secrets and sockets of the caller stay out, and no plan writes to the system. */
static void test_always(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                static const char *const never[] = {
                        "/home/ann/.ssh/id_rsa", "/root/.ssh/id_rsa", "/run/user/1000/bus", "/run/docker.sock",
                        "/var/run/docker.sock",  "/sys/kernel",       "/boot/vmlinuz",      "/var/lib/dpkg"};
                _cleanup_(plan_freep) struct plan *plan = NULL;
                char source[4096];

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                if (!plan->traits)
                        continue;
                for (size_t n = 0; n < ARRAY_SIZE(never); n++) {
                        enum seen seen = look(plan, never[n], source, sizeof(source));

                        if (streq(golden_cases[i].name, "allow-socket") && streq(source, "/run/docker.sock"))
                                continue;
                        unit_check(seen != READ && seen != WRITE, "%s: shows %s", golden_cases[i].name, never[n]);
                }
                unit_check(look(plan, "/usr/lib/x", source, sizeof(source)) == (plan->open_root ? LAYER : READ),
                           "%s: /usr is not read-only", golden_cases[i].name);
                unit_check(look(plan, "/etc/fstab", source, sizeof(source)) == (plan->open_root ? LAYER : READ),
                           "%s: /etc is not read-only", golden_cases[i].name);
                unit_check(look(plan, plan->home, source, sizeof(source)) == OWN, "%s: the home is not empty",
                           golden_cases[i].name);
                unit_check(look(plan, "/tmp/x", source, sizeof(source)) == OWN, "%s: /tmp is not its own",
                           golden_cases[i].name);
        }
}

/* Whether some step pins `directory` in what stands there when step `until` is made. */
static bool is_pinned(const struct plan *plan, size_t until, const char *directory) {
        bool pinned = false;

        for (size_t i = 0; i < until; i++) {
                const struct step *s = &plan->steps[i];

                if (s->kind == STEP_PIN && streq(s->dest, directory))
                        pinned = true;
                else if ((s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS ||
                          s->kind == STEP_HIDE) &&
                         path_is_beneath(directory, s->dest))
                        pinned = streq(directory, s->dest); /* covered; and a mount point is as good as a pin */
        }
        return pinned;
}

/* A rule inside something writable holds only while the directories above it cannot be renamed away. */
static void check_pins(const struct plan *plan, const char *name) {
        for (size_t i = 0; i < plan->n_steps; i++) {
                const struct step *rule = &plan->steps[i];
                const char *top = NULL;

                if (!startswith(rule->origin, "--") || rule->flags & STEP_SYSTEM)
                        continue;
                for (size_t k = 0; k < i; k++) {
                        const struct step *s = &plan->steps[k];

                        if ((s->kind == STEP_BIND || s->kind == STEP_COW || s->kind == STEP_TMPFS) &&
                            path_is_beneath(rule->dest, s->dest) && !streq(rule->dest, s->dest))
                                top = s->kind != STEP_TMPFS && s->flags & STEP_WRITABLE ? s->dest : NULL;
                }
                for (const char *at = top ? rule->dest + strlen(top) + 1 : NULL; at && (at = strchr(at, '/')); at++) {
                        _cleanup_(freep) char *parent = strndup(rule->dest, (size_t) (at - rule->dest));

                        unit_check(is_pinned(plan, i, parent), "%s: %s can be renamed away from above %s", name, parent,
                                   rule->dest);
                }
        }
}

static void test_pins(void **state) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        const struct fixture *f = *state;
        struct hutch_error err = {0};

        unit_check(fixture_plan(f, &plan, &err) >= 0, "%s", err.message);
        check_pins(plan, f->name);
}

static const struct fixture pin_cases[] = {
        {"pins: one directory above", {"ro=vendor/mine"}},
        {"pins: two directories above", {"hide=vendor/mine/key"}},
        {"pins: two rules below one directory", {"ro=vendor/mine", "hide=vendor/mine/key"}},
        {"pins: as user", {"ro=vendor/mine/key", "as=user"}},
        {"pins: in a copy-on-write workspace", {"workspace=cow", "ro=vendor/mine"}},
        {"pins: at a destination", {"rw=vendor:/mnt/v", "hide=vendor/mine/key"}},
        {"pins: after the workspace was attached again", {"ro=vendor/mine", "rw=.", "ro=vendor/mine"}},
        {"pins: of what is hidden again", {"hide=vendor/mine/key", "rw=."}},
};

/* One rule is one layer, wherever it shows: what the box writes at one of its places must be there at the other. */
static void test_layers(void **state _unused_) {
        static const struct fixture cases[] = {
                {"workspace", {"workspace=cow"}},
                {"path in the workspace", {"cow=vendor"}},
                {"two paths", {"cow=/data", "cow=vendor"}},
                {"path in a copy-on-write workspace", {"workspace=cow", "cow=vendor"}},
        };

        for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;

                assert_int_equal(fixture_plan(&cases[c], &plan, NULL), 0);
                for (size_t i = 0; i < plan->n_steps; i++)
                        for (size_t k = 0; k < plan->n_steps; k++) {
                                const struct step *a = &plan->steps[i], *b = &plan->steps[k];

                                if (a->kind != STEP_COW || b->kind != STEP_COW)
                                        continue;
                                assert_true(a->layer < plan->n_layers);
                                unit_check((a->layer == b->layer) == streq(a->source, b->source),
                                           "%s: %s at %s is layer %u, %s at %s is layer %u", cases[c].name, a->source,
                                           a->dest, a->layer, b->source, b->dest, b->layer);
                        }
        }
}

static void test_pins_everywhere(void **state _unused_) {
        for (size_t i = 0; i < n_golden_cases; i++) {
                _cleanup_(plan_freep) struct plan *plan = NULL;

                assert_int_equal(fixture_plan(&golden_cases[i], &plan, NULL), 0);
                check_pins(plan, golden_cases[i].name);
        }
}

int main(void) {
        unit_add_rows(pin_cases, test_pins);
        unit_add("a rule is one layer", test_layers, NULL);
        unit_add("pins in every plan", test_pins_everywhere, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                unit_add(rows[i].f.name, test, &rows[i]);
        unit_add("in every plan", test_always, NULL);
        return unit_run("plan/files");
}
