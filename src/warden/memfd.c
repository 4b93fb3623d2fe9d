/* See memfd.h. */
#include "memfd.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../base/io.h"
#include "../base/macro.h"

int memfd_make(const char *name, const void *data, size_t len) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC);
        int r = fd < 0 ? -errno : write_all(fd, data, len);

        return r < 0 ? r : take_fd(&fd);
}

int memfd_map(int fd, void **ret, size_t *ret_len) {
        struct stat st;
        void *at;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret_len = (size_t) st.st_size;
        *ret = NULL;
        if (st.st_size == 0)
                return 0;
        at = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED)
                return -errno;
        *ret = at;
        return 0;
}

void memfd_unmap(void *data, size_t len) {
        if (data)
                munmap(data, len);
}

int memfd_plan(int fd, struct plan **ret) {
        void *data = NULL;
        size_t len = 0;
        int r;

        r = memfd_map(fd, &data, &len);
        if (r >= 0)
                r = plan_decode(data, len, ret);
        memfd_unmap(data, len);
        return r;
}

int memfd_streams(const uint32_t modes[3], const int fds[3], struct run_stream ret[3], struct hutch_error *err) {
        void *data = NULL;
        int r;

        for (int i = 0; i < 3; i++)
                ret[i] = (struct run_stream){.mode = modes[i], .fd = fds[i]};
        if (modes[0] != HUTCH_STREAM_DATA)
                return 0;
        r = memfd_map(fds[0], &data, &ret[0].len);
        if (r < 0)
                return error_set(err, HUTCH_E_IO, r, "cannot read the data for stdin: %s", errno_text(-r));
        ret[0].data = data;
        return 0;
}
