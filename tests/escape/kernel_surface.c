/* bpf, perf_event_open and userfaultfd: parts of the kernel that many ways up went through.
 *
 * It must fail because the filter refuses them. Where the host keeps them from ordinary users the control shows that the calls get
 * as far as the kernel. */
#include "attack.h"

int main(void) {
        static const struct named_call calls[] = {
                {"bpf", SYS_bpf}, {"perf_event_open", SYS_perf_event_open}, {"userfaultfd", SYS_userfaultfd}};
        struct {
                uint32_t type, size;
                uint64_t config;
                char rest[112];
        } event = {1 /* software */, 128, 1 /* task clock */, {0}};
        char attributes[128] = {2 /* BPF_MAP_TYPE_ARRAY */, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1};
        long map = syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, attributes, sizeof(attributes));
        long perf = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
        long fault = syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);

        note("bpf %ld, perf_event_open %ld, userfaultfd %ld", map, perf, fault);
        if (!getenv("HUTCH_CONTROL") && (map >= 0 || perf >= 0 || fault >= 0))
                return ESCAPED;
        return try_calls(calls, ARRAY_SIZE(calls));
}
