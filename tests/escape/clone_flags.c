/* clone() and unshare() with every flag that makes a namespace, alone and hidden among others, and with high bits set.
 *
 * It must fail because the filter looks for each bit by itself. */
#include "attack.h"

static const struct {
        const char *name;
        unsigned long flag;
} flags[] = {{"mount", CLONE_NEWNS},  {"cgroup", CLONE_NEWCGROUP}, {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC},
             {"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID},       {"net", CLONE_NEWNET}};

int main(void) {
        size_t through = 0, n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                const unsigned long forms[] = {flags[i].flag, flags[i].flag | CLONE_FILES | CLONE_FS,
                                               flags[i].flag | CLONE_NEWUSER};

                for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
                        through += call_gets_through(&(struct call){NATIVE_ARCH, SYS_clone, {forms[f] | SIGCHLD}},
                                                     flags[i].name);
                        through +=
                                call_gets_through(&(struct call){NATIVE_ARCH, SYS_unshare, {forms[f]}}, flags[i].name);
                        through += call_gets_through(&(struct call){NATIVE_ARCH, SYS_unshare, {forms[f] | 1UL << 40}},
                                                     flags[i].name);
                        n += 3;
                }
        }
        through += call_gets_through(&(struct call){NATIVE_ARCH, SYS_unshare, {0x80 /* CLONE_NEWTIME */}}, "time");
        n++;
        if (getenv("HUTCH_CONTROL"))
                return through == n ? ESCAPED : STOPPED;
        return through ? ESCAPED : STOPPED;
}
