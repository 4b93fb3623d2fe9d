/* The system call filter of every box: what no command needs and the kernel has been attacked through. */
#pragma once

#include <linux/filter.h>

#include "../base/error.h"

struct filter {
        const struct sock_filter *code;
        size_t n;
};

const struct filter *filter_for(bool allow_nested);
/* For a box whose wall is Landlock of that ABI; open: with the network of the host. It notifies init of some calls. */
const struct filter *filter_for_landlock(bool open, int abi);
