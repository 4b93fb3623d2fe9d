/* Files of /proc that belong to the whole machine: core_pattern (a program that the kernel starts as root on the host), sysrq,
 * interrupts, memory ranges, the kernel's memory.
 *
 * Uid 0 owns them, with or without capabilities. It must fail because a box of root's runs under an id that owns nothing.
 *
 * only: root
 * also: /--allow-nested --workspace rw --as root */
#include "attack.h"

#include <sys/stat.h>

int main(void) {
        static const char *const written[] = {"/proc/sys/kernel/core_pattern",
                                              "/proc/sys/kernel/modprobe",
                                              "/proc/sys/vm/drop_caches",
                                              "/proc/sysrq-trigger",
                                              "/proc/mtrr",
                                              "/proc/irq/default_smp_affinity",
                                              "/proc/sys/kernel/randomize_va_space",
                                              "/proc/sys/fs/suid_dumpable"};
        static const char *const seen[] = {"/proc/kcore",       "/proc/kmsg",       "/proc/slabinfo",
                                           "/proc/vmallocinfo", "/proc/timer_list", "/proc/kpagecount"};
        int opened = 0;

        for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
                int fd = open(written[i], O_WRONLY | O_CLOEXEC);

                if (fd >= 0) {
                        note("%s opens for writing", written[i]);
                        opened++;
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
                int fd = open(seen[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                struct stat st;

                /* A container puts /dev/null over some of them. */
                if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode)) {
                        note("%s opens", seen[i]);
                        opened++;
                }
        }
        return opened ? ESCAPED : STOPPED;
}
