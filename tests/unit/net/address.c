/* Addresses: one value for every spelling, and what is not of the public internet. */
#include "net/address.h"

#include <string.h>

#include "unit.h"

static const struct row {
        const char *text;
        int r;
        const char *want;    /* as it is printed */
        const char *special; /* NULL: public */
} rows[] = {
        {"203.0.113.7", 0, "203.0.113.7", NULL},
        {"1.1.1.1", 0, "1.1.1.1", NULL},
        {"127.0.0.1", 0, "127.0.0.1", "loopback"},
        {"127.255.255.254", 0, "127.255.255.254", "loopback"},
        {"10.0.0.1", 0, "10.0.0.1", "private"},
        {"172.15.255.255", 0, "172.15.255.255", NULL},
        {"172.16.0.1", 0, "172.16.0.1", "private"},
        {"172.31.255.255", 0, "172.31.255.255", "private"},
        {"172.32.0.1", 0, "172.32.0.1", NULL},
        {"192.168.1.1", 0, "192.168.1.1", "private"},
        {"169.254.169.254", 0, "169.254.169.254", "link-local"},
        {"100.100.100.200", 0, "100.100.100.200", "shared address space"},
        {"168.63.129.16", 0, "168.63.129.16", "cloud metadata"},
        {"0.0.0.0", 0, "0.0.0.0", "unspecified"},
        {"224.0.0.251", 0, "224.0.0.251", "multicast"},
        {"255.255.255.255", 0, "255.255.255.255", "reserved"},
        {"::1", 0, "::1", "loopback"},
        {"::", 0, "::", "unspecified"},
        {"2001:db8::7", 0, "2001:db8::7", NULL},
        {"2001:DB8:0:0:0:0:0:7", 0, "2001:db8::7", NULL},
        {"fe80::1", 0, "fe80::1", "link-local"},
        {"fd00:ec2::254", 0, "fd00:ec2::254", "private"},
        {"::ffff:127.0.0.1", 0, "127.0.0.1", "loopback"},
        {"::ffff:7f00:1", 0, "127.0.0.1", "loopback"},
        {"::ffff:203.0.113.7", 0, "203.0.113.7", NULL},
        {"64:ff9b::7f00:1", 0, "64:ff9b::7f00:1", "loopback"},
        {"64:ff9b::a9fe:a9fe", 0, "64:ff9b::a9fe:a9fe", "link-local"},
        {"64:ff9b::cb00:7107", 0, "64:ff9b::cb00:7107", NULL},
        {"64:ff9b:1::1", 0, "64:ff9b:1::1", "private"},
        {"2002:7f00:1::1", 0, "2002:7f00:1::1", "loopback"},
        {"2002:cb00:7107::1", 0, "2002:cb00:7107::1", NULL},
        {"::127.0.0.1", 0, "::127.0.0.1", "loopback"},
        {"2001:0:4136:e378::1", 0, "2001:0:4136:e378::1", "reserved"},
        {"0177.0.0.1", -EINVAL},
        {"127.0.0.01", -EINVAL},
        {"0x7f.0.0.1", -EINVAL},
        {"2130706433", -EINVAL},
        {"127.1", -EINVAL},
        {"1.2.3", -EINVAL},
        {"1.2.3.4.5", -EINVAL},
        {"1.2.3.256", -EINVAL},
        {"1.2.3.4 ", -EINVAL},
        {"", -EINVAL},
        {"fe80::1%lo", -EINVAL},
        {":::1", -EINVAL},
};

static void check_row(void **state) {
        const struct row *row = *state;
        char text[ADDRESS_TEXT];
        struct address a;
        int r = address_parse(row->text, &a);

        assert_int_equal(r, row->r);
        if (r < 0)
                return;
        assert_string_equal(address_format(&a, text), row->want);
        unit_same("special", address_special(&a), row->special);
}

static const struct range_row {
        const char *text;
        int r;
        const char *special;
} ranges[] = {
        {"10.0.0.0/8", 0, "private"},
        {"10.1.0.0/16", 0, "private"},
        {"0.0.0.0/0", 0, NULL},
        {"203.0.113.0/24", 0, NULL},
        {"169.254.169.254/32", 0, "link-local"},
        {"2001:db8::/32", 0, NULL},
        {"fc00::/7", 0, "private"},
        {"::/0", 0, NULL},
        {"10.0.0.1/8", -EDOM, NULL},
        {"10.0.0.0/33", -EINVAL, NULL},
        {"10.0.0.0/", -EINVAL, NULL},
        {"10.0.0.0/08", -EINVAL, NULL},
        {"10.0.0.0/-1", -EINVAL, NULL},
        {"10.0.0.0/8 ", -EINVAL, NULL},
        {"::ffff:10.0.0.0/104", -EINVAL, NULL},
        {"https://example.org", -EINVAL, NULL},
};

static void check_range(void **state) {
        const struct range_row *row = *state;
        struct range range;

        assert_int_equal(range_parse(row->text, &range), row->r);
        if (row->r == 0)
                unit_same("special", range_special(&range), row->special);
}

int main(void) {
        unit_add_rows(rows, check_row);
        unit_add_rows(ranges, check_range);
        return unit_run("net/address");
}
