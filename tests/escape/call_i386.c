/* 32-bit calls by int 0x80: their numbers mean something else, so a filter that looks at numbers only is led astray.
 *
 * It must fail because the filter refuses every call of a foreign kind. */
#include "attack.h"

int main(void) {
#ifdef __x86_64__
        /* numbers of i386: getpid 20, mount 21, keyctl 288, unshare 310, socketcall 102, bpf 357 */
        static const struct {
                const char *name;
                uint32_t nr;
        } calls[] = {{"getpid", 20},  {"mount", 21},    {"socketcall", 102},
                     {"keyctl", 288}, {"unshare", 310}, {"bpf", 357}};
        struct call getpid_call = {AUDIT_ARCH_I386, 20, {0}};
        size_t through = 0;
        long pid = call_i386(&getpid_call);

        note("getpid by int 0x80: %ld", pid);
        if (getenv("HUTCH_CONTROL") && pid == -ENOSYS) {
                note("this kernel has no 32-bit calls");
                return UNTRIED;
        }
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                through += call_gets_through(&(struct call){AUDIT_ARCH_I386, calls[i].nr, {0}}, calls[i].name);
        if (getenv("HUTCH_CONTROL"))
                return pid == getpid() && through == ARRAY_SIZE(calls) ? ESCAPED : STOPPED;
        return pid > 0 || through ? ESCAPED : STOPPED;
#else
        note("only x86-64 has int 0x80");
        return UNTRIED;
#endif
}
