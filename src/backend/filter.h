/* The system call filter of every box: what no command needs and the kernel has been attacked through. */
#pragma once

#include <linux/filter.h>

#include "../base/error.h"

struct filter {
        const struct sock_filter *code;
        size_t n;
};

const struct filter *filter_for(bool allow_nested);
/* For a box whose wall is Landlock of that ABI, and whose network is the host's as far as it has one. It notifies init
 * of some calls; FILTER_RULES: of those that make and connect sockets as well. */
enum filter_network { FILTER_DENY, FILTER_RULES, FILTER_OPEN };
const struct filter *filter_for_landlock(enum filter_network network, int abi);
