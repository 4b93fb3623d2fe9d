/* Calls that change or end the machine: modules, kexec, reboot, swap, accounting, quotas, ports, the kernel's log.
 *
 * They need capabilities that a box does not have; the filter is the second wall, and alone it must hold. None of them is really
 * made (see call_gets_through). */
#include "attack.h"

int main(void) {
        static const struct named_call calls[] = {
                {"kexec_load", SYS_kexec_load},
                {"kexec_file_load", SYS_kexec_file_load},
                {"init_module", SYS_init_module},
                {"finit_module", SYS_finit_module},
                {"delete_module", SYS_delete_module},
                {"reboot", SYS_reboot},
                {"swapon", SYS_swapon},
                {"swapoff", SYS_swapoff},
                {"acct", SYS_acct},
                {"quotactl", SYS_quotactl},
                {"quotactl_fd", 443},
                {"syslog", SYS_syslog},
                {"vhangup", SYS_vhangup},
                {"sethostname", SYS_sethostname},
                {"setdomainname", SYS_setdomainname},
                {"settimeofday", SYS_settimeofday},
                {"clock_settime", SYS_clock_settime},
                {"clock_adjtime", SYS_clock_adjtime},
                {"adjtimex", SYS_adjtimex},
#ifdef __x86_64__
                {"iopl", SYS_iopl},
                {"ioperm", SYS_ioperm},
                {"modify_ldt", SYS_modify_ldt},
                {"uselib", SYS_uselib},
                {"sysfs", SYS_sysfs},
                {"_sysctl", SYS__sysctl},
#endif
        };

        return try_calls(calls, ARRAY_SIZE(calls));
}
