// BPF programs as arrays of instructions, and bpf(2) without a library.

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

// Instructions, by the names of the kernel's include/linux/filter.h
#define INSN(code, dst, src, off, imm) ((struct bpf_insn){code, dst, src, off, imm})
#define MOV(dst, imm) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define MOVX(dst, src) INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define ALU(op, dst, imm) INSN(BPF_ALU64 | (op) | BPF_K, dst, 0, 0, imm)
#define ALUX(op, dst, src) INSN(BPF_ALU64 | (op) | BPF_X, dst, src, 0, 0)
#define LOAD(size, dst, src, off) INSN(BPF_LDX | BPF_MEM | (size), dst, src, off, 0)
#define STOREX(size, dst, src, off) INSN(BPF_STX | BPF_MEM | (size), dst, src, off, 0)
#define STORE(size, dst, off, imm) INSN(BPF_ST | BPF_MEM | (size), dst, 0, off, imm)
#define JUMP(op, dst, imm, off) INSN(BPF_JMP | (op) | BPF_K, dst, 0, off, imm)
#define JUMPX(op, dst, src, off) INSN(BPF_JMP | (op) | BPF_X, dst, src, off, 0)
#define GOTO(off) INSN(BPF_JMP | BPF_JA, 0, 0, off, 0)
#define CALL(helper) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define CALL_OWN(off) INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, off)
#define ADDRESS_OWN(dst, off) INSN(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_FUNC, 0, off), INSN(0, 0, 0, 0, 0)
#define WIDE(dst, low, high) INSN(BPF_LD | BPF_DW | BPF_IMM, dst, 0, 0, low), INSN(0, 0, 0, 0, high)
#define MAP(dst, fd) INSN(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define EXIT INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static char verifier_log[1 << 20];

static int bpf(int command, union bpf_attr *attr) {
    return syscall(__NR_bpf, command, attr, sizeof *attr);
}

static int new_map(int type, int key_size, int value_size, int entries, int flags) {
    union bpf_attr attr = {.map_type = type};
    attr.key_size = key_size;
    attr.value_size = value_size;
    attr.max_entries = entries;
    attr.map_flags = flags;
    return bpf(BPF_MAP_CREATE, &attr);
}

static int element(int command, int map, const void *key, const void *value, uint64_t flags) {
    union bpf_attr attr = {0};
    attr.map_fd = map;
    attr.key = (uintptr_t)key;
    attr.value = (uintptr_t)value;
    attr.flags = flags;
    return bpf(command, &attr);
}

static int load_licensed(int type, const struct bpf_insn *program, int length, const char *license) {
    union bpf_attr attr = {.prog_type = type};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = length;
    attr.license = (uintptr_t)license;
    attr.log_buf = (uintptr_t)verifier_log;
    attr.log_size = sizeof verifier_log;
    attr.log_level = 1;
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0 && getenv("LOG")) fprintf(stderr, "%s", verifier_log);
    return fd;
}

static int load(int type, const struct bpf_insn *program, int length) {
    return load_licensed(type, program, length, "GPL");
}

static int run(int program, void *context, int size, unsigned *result) {
    union bpf_attr attr = {0};
    attr.test.prog_fd = program;
    attr.test.ctx_in = (uintptr_t)context;
    attr.test.ctx_size_in = size;
    int done = bpf(BPF_PROG_TEST_RUN, &attr);
    *result = attr.test.retval;
    return done;
}

// What a call gives, or its error
static void say(const char *what, int result) {
    if (result < 0)
        printf("%s: errno %d\n", what, errno);
    else
        printf("%s: done\n", what);
}
