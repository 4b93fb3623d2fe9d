/* Giving up what was needed to build the box: capabilities of every set, and the ways to get them back. */
#include "init.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

#include "../host/sys.h"

/* Whether no capability can be held or gained: permitted, inheritable and, for root, the bounding set are empty. So it
 * is for an ordinary user without a user namespace, and for root in a box; no_new_privs keeps it so. */
static bool nothing_to_drop(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct held[2];
        unsigned long cap = 0;

        memset(held, 0xff, sizeof(held));
        if (syscall(SYS_capget, &header, held) < 0 || held[0].permitted || held[1].permitted)
                return false;
        if (geteuid() != 0)
                return true;
        if (held[0].inheritable || held[1].inheritable)
                return false;
        while (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 0)
                cap++;
        return errno == EINVAL && cap > CAP_AUDIT_READ && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0;
}

int init_drop_privileges(struct hutch_error *err) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {0};
        const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
        const char *what = "securebits";
        bool ok;

        if (nothing_to_drop())
                return 0;

        ok = prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0;
        if (ok) {
                what = "the bounding set";
                unsigned long cap = 0;

                while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
                        cap++;
                /* Past the last one that this kernel supports; a failure of a supported one would be reported. */
                ok = errno == EINVAL && cap > CAP_AUDIT_READ && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0;
        }
        if (ok) {
                what = "the ambient set";
                ok = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
        }
        if (ok) {
                what = "the other sets";
                ok = syscall(SYS_capset, &header, none) == 0;
        }
        if (!ok)
                return error_set(err, HUTCH_E_SETUP_FAILED, errno, "cannot drop capabilities (%s): %s", what,
                                 errno_text(errno));
        return 0;
}
