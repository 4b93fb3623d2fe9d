/* Classic BPF as seccomp knows it, run over a struct seccomp_data: what the kernel would answer, without the kernel. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

/* What the kernel checks when a filter is loaded: known instructions, jumps that stay inside, loads of whole words
 * within the data, a return at the end. NULL, or what is wrong with it. */
const char *bpf_check(const struct sock_filter *code, size_t n);

/* Runs a checked program; the filter's return value. */
__u32 bpf_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data);
