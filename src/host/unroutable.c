/* See unroutable.h. A refused connect() or sendto() counts as OutNoRoutes; so does a query to a remote name server. A
 * name server on the loopback (systemd-resolved) does not exist in a box, and the query counts as NoPorts. */
#include "unroutable.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/io.h"
#include "../base/macro.h"

/* /proc/net/snmp: a line of names, and below it the line of their values, both behind "Ip:". */
static uint64_t count_in_columns(const char *text, const char *group, const char *name) {
        const char *names = strstr(text, group), *values = names ? strchr(names, '\n') : NULL;
        size_t len = strlen(name);

        if (!values || strncmp(values + 1, group, strlen(group)) != 0)
                return 0;
        for (values++; *names && *names != '\n'; names++, values++) {
                if (strncmp(names, name, len) == 0 && strchr(" \n", names[len]))
                        return strtoull(values, NULL, 10);
                names += strcspn(names, " \n");
                values += strcspn(values, " \n");
                if (*names != ' ' || *values != ' ')
                        return 0;
        }
        return 0;
}

/* /proc/net/snmp6: a name and a value a line. */
static uint64_t count_in_lines(const char *text, const char *name) {
        const char *at = strstr(text, name);

        return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

uint64_t host_count_unroutable(int pid) {
        _cleanup_(freep) char *v4 = NULL, *v6 = NULL;
        char path[64], who[16] = "self";
        uint64_t n = 0;

        if (pid > 0)
                snprintf(who, sizeof(who), "%d", pid);
        snprintf(path, sizeof(path), "/proc/%s/net/snmp", who);
        if (read_whole_file(AT_FDCWD, path, 65536, &v4, NULL) >= 0)
                n += count_in_columns(v4, "Ip: ", "OutNoRoutes") + count_in_columns(v4, "Udp: ", "NoPorts");
        snprintf(path, sizeof(path), "/proc/%s/net/snmp6", who);
        if (read_whole_file(AT_FDCWD, path, 65536, &v6, NULL) >= 0)
                n += count_in_lines(v6, "Ip6OutNoRoutes") + count_in_lines(v6, "Udp6NoPorts");
        return n;
}
