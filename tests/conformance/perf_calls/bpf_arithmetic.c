// What random programs of a hundred instructions compute: every operation of ALU, ALU64, JMP and JMP32, loads, stores
// and atomic operations on the stack.

#include "bpf.h"

enum { PROGRAMS = 100, LONGEST = 400 };

static uint64_t seed = 20;

static uint64_t next(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static unsigned below(unsigned limit) {
    return next() % limit;
}

static uint64_t number(void) {
    switch (below(5)) {
    case 0: return next();
    case 1: return (uint32_t)next();
    case 2: return below(20);
    case 3: return -(uint64_t)below(20);
    default: return 1ull << below(64);
    }
}

static struct bpf_insn program[LONGEST];
static int length;

static void add(int code, int dst, int src, int off, int imm) {
    program[length++] = INSN(code, dst, src, off, imm);
}

static const int OPERATIONS[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD,  BPF_OR,
                                 BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH, BPF_ARSH, BPF_MOV};
static const int JUMPS[] = {BPF_JEQ, BPF_JNE, BPF_JGT,  BPF_JGE,  BPF_JLT, BPF_JLE,
                            BPF_JSET, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE};
static const int ATOMICS[] = {BPF_ADD, BPF_OR, BPF_AND, BPF_XOR, BPF_ADD | BPF_FETCH, BPF_OR | BPF_FETCH,
                              BPF_AND | BPF_FETCH, BPF_XOR | BPF_FETCH, BPF_XCHG, BPF_CMPXCHG};
static const int SIZES[] = {BPF_B, BPF_H, BPF_W, BPF_DW};
static const int WIDTHS[] = {16, 32, 64};
static const int EXTENSIONS[] = {8, 16, 32};
enum { MEMSX = 0x80 };

static void add_operation(int class, int dst, int src) {
    int operation = OPERATIONS[below(LENGTH(OPERATIONS))], by_register = below(2);
    int shifts = operation == BPF_LSH || operation == BPF_RSH || operation == BPF_ARSH;
    int divides = operation == BPF_DIV || operation == BPF_MOD;
    int off = divides ? below(2) : 0;
    if (operation == BPF_MOV && by_register && below(2)) off = EXTENSIONS[below(class == BPF_ALU64 ? 3 : 2)];
    int imm = shifts ? below(32) : (int)number();
    if (!imm) imm = 1;
    add(class | operation | (by_register ? BPF_X : BPF_K), dst, by_register ? src : 0, off, by_register ? 0 : imm);
}

static void add_memory(int dst, int src) {
    int which = below(4), bytes = 1 << which;
    int off = -bytes * (1 + (int)below(64 / bytes)), mode = which < 3 && below(2) ? MEMSX : BPF_MEM;
    add(BPF_STX | BPF_MEM | SIZES[which], BPF_REG_10, src, off, 0);
    add(BPF_LDX | mode | SIZES[which], dst, BPF_REG_10, off, 0);
}

static void add_atomic(int dst, int src) {
    int size = SIZES[2 + below(2)], operation = ATOMICS[below(LENGTH(ATOMICS))];
    add(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, dst, -64, 0);
    add(BPF_STX | BPF_ATOMIC | size, BPF_REG_10, src, -64, operation);
    add(BPF_LDX | BPF_MEM | BPF_DW, dst, BPF_REG_10, -64, 0);
}

static void add_jump(int dst, int src) {
    int by_register = below(2), class = below(2) ? BPF_JMP : BPF_JMP32, jump = JUMPS[below(LENGTH(JUMPS))];
    int imm = by_register ? 0 : (int)number();
    add(class | jump | (by_register ? BPF_X : BPF_K), dst, by_register ? src : 0, 1, imm);
    add(BPF_ALU64 | BPF_ADD | BPF_K, below(10), 0, 0, 7);
}

static void add_swap(int dst) {
    int width = WIDTHS[below(3)], source = below(2) ? BPF_X : 0;
    add(below(3) ? BPF_ALU | BPF_END | source : BPF_ALU64 | BPF_END, dst, 0, 0, width);
}

static void make(void) {
    length = 0;
    for (int reg = 0; reg < 10; reg++) {
        if (reg == 1) continue;
        uint64_t value = number();
        add(BPF_LD | BPF_DW | BPF_IMM, reg, 0, 0, value);
        add(0, 0, 0, 0, value >> 32);
    }
    add(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_1, 0, 0);
    for (int i = 0; i < 60; i++) {
        int dst = below(10), src = below(10), class = below(2) ? BPF_ALU64 : BPF_ALU;
        switch (below(10)) {
        case 0: add(class | BPF_NEG, dst, 0, 0, 0); break;
        case 1: add_swap(dst); break;
        case 2: add_memory(dst, src); break;
        case 3: add_atomic(dst, src); break;
        case 4: add_jump(dst, src); break;
        default: add_operation(class, dst, src);
        }
    }
    for (int reg = 1; reg < 10; reg++) {
        add(BPF_ALU64 | BPF_XOR | BPF_X, 0, reg, 0, 0);
        add(BPF_ALU64 | BPF_MUL | BPF_K, 0, 0, 0, 31);
    }
    add(BPF_ALU64 | BPF_MOV | BPF_X, 2, 0, 0, 0);
    add(BPF_ALU64 | BPF_RSH | BPF_K, 2, 0, 0, 32);
    add(BPF_ALU64 | BPF_XOR | BPF_X, 0, 2, 0, 0);
    program[length++] = EXIT;
}

int main(int count, char **arguments) {
    int programs = count > 1 ? atoi(arguments[1]) : PROGRAMS;
    for (int i = 0; i < programs; i++) {
        make();
        uint64_t context = number();
        int fd = load(BPF_PROG_TYPE_RAW_TRACEPOINT, program, length);
        unsigned result = 0;
        if (fd < 0)
            printf("%d: errno %d\n", i, errno);
        else if (run(fd, &context, sizeof context, &result))
            printf("%d: not run, errno %d\n", i, errno);
        else
            printf("%d: %x\n", i, result);
        close(fd);
    }
}
