/* hutch-archive: turns entries into an archive (`pack`) or an archive into entries (`unpack`); see stream.h.
 *
 * It is a separate program so that `hutch run` does not contain libarchive, and so that the code which reads untrusted
 * archives is harmless: before it reads one it gives up every system call except those that read, write and allocate,
 * so it cannot open files, create processes or use the network. The archive is a pax tar under zstd: entries are
 * written as received, owners are left out, and the same entries give the same bytes. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../base/macro.h"
#include "stream.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const int allowed[] = {SYS_read,         SYS_write,       SYS_lseek,         SYS_fstat,      SYS_newfstatat,
                              SYS_mmap,         SYS_munmap,      SYS_mremap,        SYS_mprotect,   SYS_brk,
                              SYS_madvise,      SYS_futex,       SYS_exit,          SYS_exit_group, SYS_close,
                              SYS_rt_sigreturn, SYS_sendto,      SYS_recvfrom,      SYS_getrandom,  SYS_clock_gettime,
                              SYS_gettimeofday, SYS_sched_yield, SYS_rt_sigprocmask};

static int close_the_door(void) {
        struct sock_filter program[ARRAY_SIZE(allowed) + 8];
        struct sock_fprog prog = {.filter = program};
        const struct rlimit memory = {(rlim_t) 1 << 30, (rlim_t) 1 << 30}, none = {0, 0};
        size_t n = 0;

        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
        program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
                program[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) allowed[i],
                                                             (unsigned char) (ARRAY_SIZE(allowed) - i), 0);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        program[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        prog.len = (unsigned short) n;
        if (setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
                return -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
                return -errno;
        return 0;
}

static int fail(const char *text) {
        const struct archive_item item = {.kind = ITEM_FAILED, .name = (char *) (text ? text : "unknown error")};

        (void) stream_put(ARCHIVE_SOCKET, &item);
        return 1;
}

static int succeed(void) {
        const struct archive_item item = {.kind = ITEM_END, .name = (char *) ""};

        return stream_put(ARCHIVE_SOCKET, &item) < 0;
}

/* ---- pack ---- */

static int put_header(struct archive *a, struct archive_entry *entry, const struct archive_item *item) {
        static const unsigned types[] = {[ITEM_REGULAR] = AE_IFREG,
                                         [ITEM_FOLDER] = AE_IFDIR,
                                         [ITEM_LINK] = AE_IFLNK,
                                         [ITEM_HARD_LINK] = AE_IFREG};

        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, item->name);
        archive_entry_set_filetype(entry, types[item->kind]);
        archive_entry_set_perm(entry, (__LA_MODE_T) (item->mode & 07777));
        archive_entry_set_mtime(entry, item->sec, item->nsec);
        archive_entry_set_size(entry, item->kind == ITEM_REGULAR ? (la_int64_t) item->size : 0);
        if (item->kind == ITEM_LINK)
                archive_entry_set_symlink(entry, item->target);
        if (item->kind == ITEM_HARD_LINK)
                archive_entry_set_hardlink(entry, item->target);
        return archive_write_header(a, entry);
}

static int pack(void) {
        struct archive *a = archive_write_new();
        struct archive_entry *entry = archive_entry_new();
        struct archive_item item = {0};

        if (!a || !entry || archive_write_add_filter_zstd(a) != ARCHIVE_OK ||
            archive_write_set_format_pax(a) != ARCHIVE_OK ||
            archive_write_set_options(a, "hdrcharset=BINARY") < ARCHIVE_WARN ||
            archive_write_set_bytes_in_last_block(a, 1) != ARCHIVE_OK ||
            archive_write_open_fd(a, ARCHIVE_FILE) != ARCHIVE_OK)
                return fail(a ? archive_error_string(a) : "out of memory");
        for (;;) {
                if (stream_get(ARCHIVE_SOCKET, &item) < 0)
                        return 1; /* hutch is gone */
                if (item.kind == ITEM_END)
                        break;
                if (item.kind == ITEM_DATA) {
                        if (archive_write_data(a, item.data.data, item.data.len) != (la_ssize_t) item.data.len)
                                return fail(archive_error_string(a));
                } else if (item.kind >= ITEM_OTHER || put_header(a, entry, &item) < ARCHIVE_WARN)
                        return fail(archive_error_string(a));
        }
        if (archive_write_close(a) != ARCHIVE_OK)
                return fail(archive_error_string(a));
        return succeed();
}

/* ---- unpack ---- */

static enum archive_kind kind_of(struct archive_entry *entry) {
        if (archive_entry_hardlink(entry))
                return ITEM_HARD_LINK;
        switch (archive_entry_filetype(entry)) {
        case AE_IFREG:
                return ITEM_REGULAR;
        case AE_IFDIR:
                return ITEM_FOLDER;
        case AE_IFLNK:
                return ITEM_LINK;
        default:
                return ITEM_OTHER;
        }
}

static int pass_on(struct archive *a, struct archive_entry *entry, la_int64_t *at) {
        struct archive_item item = {.kind = kind_of(entry),
                                    .name = (char *) archive_entry_pathname(entry),
                                    .mode = archive_entry_perm(entry),
                                    .sec = archive_entry_mtime(entry),
                                    .nsec = (uint32_t) archive_entry_mtime_nsec(entry),
                                    .size = archive_entry_size(entry) > 0 ? (uint64_t) archive_entry_size(entry) : 0};
        const void *data;
        size_t len;
        int r;

        if (item.kind == ITEM_LINK)
                item.target = (char *) archive_entry_symlink(entry);
        if (item.kind == ITEM_HARD_LINK)
                item.target = (char *) archive_entry_hardlink(entry);
        if (!item.name || ((item.kind == ITEM_LINK || item.kind == ITEM_HARD_LINK) && !item.target))
                return fail("a name in it cannot be read");
        if (stream_put(ARCHIVE_SOCKET, &item) < 0)
                return 1;
        if (item.kind != ITEM_REGULAR)
                return 0;
        *at = 0;
        while ((r = archive_read_data_block(a, &data, &len, at)) == ARCHIVE_OK)
                if (stream_put_data(ARCHIVE_SOCKET, data, len) < 0)
                        return 1;
        return r == ARCHIVE_EOF ? 0 : fail(archive_error_string(a));
}

static int unpack(void) {
        struct archive *a = archive_read_new();
        struct archive_entry *entry;
        la_int64_t at;
        int r;

        if (!a || archive_read_support_filter_zstd(a) < ARCHIVE_WARN ||
            archive_read_support_format_tar(a) != ARCHIVE_OK ||
            archive_read_open_fd(a, ARCHIVE_FILE, 65536) != ARCHIVE_OK)
                return fail(a ? archive_error_string(a) : "out of memory");
        while ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN)
                if (pass_on(a, entry, &at) != 0)
                        return 1;
        return r == ARCHIVE_EOF ? succeed() : fail(archive_error_string(a));
}

int main(int argc, char **argv) {
        int r = argc == 2 ? close_the_door() : -EINVAL;

        if (r < 0) {
                fprintf(stderr, "hutch-archive: started by hutch, not by hand\n");
                return 125;
        }
        return streq(argv[1], "pack") ? pack() : unpack();
}
