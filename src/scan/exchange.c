#include "exchange.h"

#include <errno.h>
#include <sys/socket.h>

static int send_all(int fd, const uint8_t *data, size_t len) {
        while (len > 0) {
                ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                len -= (size_t) n;
        }
        return 0;
}

static int receive_all(int fd, uint8_t *data, size_t len) {
        while (len > 0) {
                ssize_t n = recv(fd, data, len, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EPIPE;
                data += n;
                len -= (size_t) n;
        }
        return 0;
}

int record_send(int fd, const struct buf *b) {
        uint64_t len = b->len;
        int r;

        if (b->oom)
                return -ENOMEM;
        r = send_all(fd, (const uint8_t *) &len, sizeof(len));
        return r < 0 ? r : send_all(fd, b->data, b->len);
}

int record_receive(int fd, uint8_t **ret, size_t *ret_len) {
        uint64_t len;
        uint8_t *data;
        int r = receive_all(fd, (uint8_t *) &len, sizeof(len));

        if (r < 0)
                return r;
        if (len > SCAN_RECORD_MOST)
                return -EBADMSG;
        data = malloc(len + 1);
        if (!data)
                return -ENOMEM;
        r = receive_all(fd, data, len);
        if (r < 0) {
                free(data);
                return r;
        }
        data[len] = 0;
        *ret = data;
        *ret_len = len;
        return 0;
}

void scan_report_done(struct scan_report *report) {
        for (size_t i = 0; i < report->n; i++) {
                free(report->findings[i].rule);
                free(report->findings[i].reason);
                free(report->findings[i].fix);
                free(report->findings[i].excerpt);
                free(report->findings[i].why);
        }
        free(report->findings);
        free(report->error);
        *report = (struct scan_report){0};
}

int scan_report_decode(const uint8_t *data, size_t len, struct scan_report *ret) {
        struct wire_reader r = {.data = data, .left = len};
        struct scan_report report = {0};
        uint32_t n;

        report.error = wire_get_str(&r);
        report.language = wire_get_u32(&r);
        report.dropped = wire_get_u64(&r);
        n = wire_get_count(&r, 16);
        report.findings = calloc(n ? n : 1, sizeof(*report.findings));
        if (!report.findings) {
                free(report.error);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++) {
                struct scan_finding *f = &report.findings[report.n++];

                f->rule = wire_get_str(&r);
                f->severity = wire_get_u32(&r);
                f->line = wire_get_u32(&r);
                f->column = wire_get_u32(&r);
                f->excerpt = wire_get_str(&r);
                f->reason = wire_get_str(&r);
                f->fix = wire_get_str(&r);
                f->suppressed = wire_get_u32(&r) != 0;
                f->why = wire_get_str(&r);
                if (!f->rule || !f->reason || !f->excerpt || f->severity > 2)
                        r.failed = true;
        }
        if (r.failed) {
                scan_report_done(&report);
                return -EBADMSG;
        }
        *ret = report;
        return 0;
}
