/* See bpf.h. The instructions are those that seccomp_check_filter() of the kernel admits. */
#include "bpf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *check_one(const struct sock_filter *i, size_t left) {
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
                return i->k % 4 || i->k >= sizeof(struct seccomp_data) ? "a load outside of the data" : NULL;
        case BPF_LD | BPF_W | BPF_LEN:
        case BPF_LDX | BPF_W | BPF_LEN:
        case BPF_LD | BPF_IMM:
        case BPF_LDX | BPF_IMM:
        case BPF_MISC | BPF_TAX:
        case BPF_MISC | BPF_TXA:
        case BPF_RET | BPF_K:
        case BPF_RET | BPF_A:
        case BPF_ALU | BPF_ADD | BPF_K:
        case BPF_ALU | BPF_ADD | BPF_X:
        case BPF_ALU | BPF_SUB | BPF_K:
        case BPF_ALU | BPF_SUB | BPF_X:
        case BPF_ALU | BPF_AND | BPF_K:
        case BPF_ALU | BPF_AND | BPF_X:
        case BPF_ALU | BPF_OR | BPF_K:
        case BPF_ALU | BPF_OR | BPF_X:
        case BPF_ALU | BPF_XOR | BPF_K:
        case BPF_ALU | BPF_XOR | BPF_X:
        case BPF_ALU | BPF_NEG:
                return NULL;
        case BPF_ALU | BPF_LSH | BPF_K:
        case BPF_ALU | BPF_RSH | BPF_K:
                return i->k >= 32 ? "a shift too far" : NULL;
        case BPF_LD | BPF_MEM:
        case BPF_LDX | BPF_MEM:
        case BPF_ST:
        case BPF_STX:
                return i->k >= BPF_MEMWORDS ? "a cell that is none" : NULL;
        case BPF_JMP | BPF_JA:
                return i->k >= left ? "a jump past the end" : NULL;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JEQ | BPF_X:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_X:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_X:
        case BPF_JMP | BPF_JSET | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_X:
                return i->jt >= left || i->jf >= left ? "a jump past the end" : NULL;
        default:
                return "an instruction that seccomp does not know";
        }
}

const char *bpf_check(const struct sock_filter *code, size_t n) {
        if (n == 0 || n > BPF_MAXINSNS)
                return "a program too short or too long";
        for (size_t i = 0; i < n; i++) {
                const char *fault = check_one(&code[i], n - i - 1);

                if (fault)
                        return fault;
        }
        return BPF_CLASS(code[n - 1].code) == BPF_RET ? NULL : "no return at the end";
}

static __u32 alu(__u16 code, __u32 a, __u32 b) {
        switch (BPF_OP(code)) {
        case BPF_ADD:
                return a + b;
        case BPF_SUB:
                return a - b;
        case BPF_AND:
                return a & b;
        case BPF_OR:
                return a | b;
        case BPF_XOR:
                return a ^ b;
        case BPF_LSH:
                return a << b;
        case BPF_RSH:
                return a >> b;
        case BPF_NEG:
                return -a;
        default:
                abort();
        }
}

static int jumps(__u16 code, __u32 a, __u32 b) {
        switch (BPF_OP(code)) {
        case BPF_JEQ:
                return a == b;
        case BPF_JGT:
                return a > b;
        case BPF_JGE:
                return a >= b;
        case BPF_JSET:
                return (a & b) != 0;
        default:
                abort();
        }
}

__u32 bpf_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data) {
        __u32 a = 0, x = 0, cells[BPF_MEMWORDS] = {0};

        for (size_t pc = 0; pc < n; pc++) {
                const struct sock_filter *i = &code[pc];
                __u32 operand = BPF_SRC(i->code) == BPF_X ? x : i->k;

                switch (BPF_CLASS(i->code)) {
                case BPF_RET:
                        return BPF_RVAL(i->code) == BPF_A ? a : i->k;
                case BPF_LD:
                        if (BPF_MODE(i->code) == BPF_ABS)
                                memcpy(&a, (const char *) data + i->k, sizeof(a));
                        else
                                a = BPF_MODE(i->code) == BPF_MEM   ? cells[i->k]
                                    : BPF_MODE(i->code) == BPF_LEN ? sizeof(*data)
                                                                   : i->k;
                        break;
                case BPF_LDX:
                        x = BPF_MODE(i->code) == BPF_MEM   ? cells[i->k]
                            : BPF_MODE(i->code) == BPF_LEN ? sizeof(*data)
                                                           : i->k;
                        break;
                case BPF_ST:
                        cells[i->k] = a;
                        break;
                case BPF_STX:
                        cells[i->k] = x;
                        break;
                case BPF_ALU:
                        a = alu(i->code, a, operand);
                        break;
                case BPF_JMP:
                        pc += BPF_OP(i->code) == BPF_JA ? i->k : jumps(i->code, a, operand) ? i->jt : i->jf;
                        break;
                default: /* BPF_MISC */
                        if (BPF_MISCOP(i->code) == BPF_TAX)
                                x = a;
                        else
                                a = x;
                }
        }
        abort();
}
