// What the verifier takes and refuses, by which error, and what comes of it: a program for each rule.

#include "bpf.h"

static int array, hash, ring, events, stacks, readonly, queue;

static void judge_as(int type, const char *what, const struct bpf_insn *program, int length) {
    int fd = load(type, program, length);
    unsigned result = 0;
    uint64_t context[12] = {1, 2, 3};
    if (fd < 0)
        printf("%s: errno %d\n", what, errno);
    else if (type != BPF_PROG_TYPE_RAW_TRACEPOINT)
        printf("%s: loaded\n", what);
    else if (run(fd, context, sizeof context, &result))
        printf("%s: not run, errno %d\n", what, errno);
    else
        printf("%s: %d\n", what, result);
    close(fd);
}

#define JUDGE_AS(type, what, ...)                          \
    do {                                                   \
        struct bpf_insn program[] = {__VA_ARGS__};         \
        judge_as(type, what, program, LENGTH(program));    \
    } while (0)
#define JUDGE(what, ...) JUDGE_AS(BPF_PROG_TYPE_RAW_TRACEPOINT, what, __VA_ARGS__)

// R0: a pointer to the element `key` of `map`, or null
#define LOOKUP(map, key) \
    STORE(BPF_W, 10, -4, key), MOVX(2, 10), ALU(BPF_ADD, 2, -4), MAP(1, map), CALL(BPF_FUNC_map_lookup_elem)
#define OR_EXIT JUMP(BPF_JNE, 0, 0, 2), MOV(0, 99), EXIT
#define FOUND(map, key) LOOKUP(map, key), OR_EXIT  // 11 instructions
#define END MOV(0, 0), EXIT

static void forms(void) {
    JUDGE("nothing but an exit", EXIT);
    JUDGE("a constant", MOV(0, 7), EXIT);
    JUDGE("no exit", MOV(0, 7));
    JUDGE("unreachable", MOV(0, 7), EXIT, MOV(0, 8), EXIT);
    JUDGE("a jump beyond the end", MOV(0, 7), GOTO(5), EXIT);
    JUDGE("a jump before the beginning", MOV(0, 7), GOTO(-5), EXIT);
    JUDGE("a jump into a wide immediate", MOV(0, 7), JUMP(BPF_JEQ, 0, 0, 1), WIDE(1, 1, 1), EXIT);
    JUDGE("half of a wide immediate", INSN(BPF_LD | BPF_DW | BPF_IMM, 0, 0, 0, 1), EXIT);
    JUDGE("an opcode that is none", INSN(0xff, 0, 0, 0, 0), EXIT);
    JUDGE("a register that is none", INSN(BPF_ALU64 | BPF_MOV | BPF_K, 11, 0, 0, 0), EXIT);
    JUDGE("another register that is none", INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 12, 0, 0), EXIT);
    JUDGE("reserved fields of MOV", INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 1, 0, 0), EXIT);
    JUDGE("reserved fields of an addition", MOV(0, 1), INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 1, 3), EXIT);
    JUDGE("reserved fields of an exit", MOV(0, 1), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 1));
    JUDGE("reserved fields of a jump", MOV(0, 1), INSN(BPF_JMP | BPF_JA, 1, 0, 0, 0), EXIT);
    JUDGE("reserved fields of a load", INSN(BPF_LDX | BPF_MEM | BPF_DW, 0, 1, 0, 1), EXIT);
    JUDGE("reserved fields of a store", MOV(0, 1), INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 0, -8, 1), EXIT);
    JUDGE("reserved fields of a negation", MOV(0, 1), INSN(BPF_ALU64 | BPF_NEG, 0, 0, 0, 1), EXIT);
    JUDGE("reserved fields of a swap", MOV(0, 1), INSN(BPF_ALU | BPF_END, 0, 1, 0, 16), EXIT);
    JUDGE("a swap of 24 bits", MOV(0, 1), INSN(BPF_ALU | BPF_END, 0, 0, 0, 24), EXIT);
    JUDGE("a division by zero", MOV(0, 1), ALU(BPF_DIV, 0, 0), EXIT);
    JUDGE("a shift by 64", MOV(0, 1), ALU(BPF_LSH, 0, 64), EXIT);
    JUDGE("a shift of 32 bits by 32", MOV(0, 1), INSN(BPF_ALU | BPF_LSH | BPF_K, 0, 0, 0, 32), EXIT);
    JUDGE("an endless loop", MOV(0, 1), GOTO(-1), EXIT);
    JUDGE("an endless loop of nothing", MOV(0, 1), GOTO(-2), EXIT);
    JUDGE("a loop that ends", MOV(0, 0), ALU(BPF_ADD, 0, 3), JUMP(BPF_JLT, 0, 300, -2), EXIT);
    JUDGE("a loop over what is not known", LOAD(BPF_DW, 0, 1, 0), ALU(BPF_ADD, 0, 1), JUMP(BPF_JLT, 0, 9, -2), EXIT);
    JUDGE("packets", MOVX(6, 1), INSN(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0), EXIT);
    judge_as(BPF_PROG_TYPE_RAW_TRACEPOINT, "no instruction", (struct bpf_insn[]){EXIT}, 0);
    judge_as(1000, "a type that is none", (struct bpf_insn[]){MOV(0, 0), EXIT}, 2);
    judge_as(0, "no type", (struct bpf_insn[]){MOV(0, 0), EXIT}, 2);
}

static void registers(void) {
    JUDGE("a register that has not been set", MOVX(0, 2), EXIT);
    JUDGE("an addition to what has not been set", ALU(BPF_ADD, 0, 1), EXIT);
    JUDGE("a comparison of what has not been set", MOV(0, 0), JUMPX(BPF_JEQ, 0, 5, 0), EXIT);
    JUDGE("set on one way alone", LOAD(BPF_DW, 3, 1, 0), JUMP(BPF_JEQ, 3, 5, 1), MOV(2, 2), MOVX(0, 2), EXIT);
    JUDGE("a write to the frame pointer", MOV(10, 0), MOV(0, 0), EXIT);
    JUDGE("an addition to the frame pointer", ALU(BPF_ADD, 10, -8), MOV(0, 0), EXIT);
    JUDGE("a call's arguments afterwards", MOV(1, 5), CALL(BPF_FUNC_ktime_get_ns), MOVX(0, 1), EXIT);
    JUDGE("what a call leaves alone", MOV(6, 5), CALL(BPF_FUNC_ktime_get_ns), MOVX(0, 6), EXIT);
    JUDGE("a number as a pointer", MOV(2, 0), LOAD(BPF_DW, 0, 2, 0), EXIT);
    JUDGE("a store to a number", MOV(2, 1), STORE(BPF_W, 2, 0, 1), END);
    JUDGE("a pointer that is returned", MOVX(0, 10), MOV(0, 3), EXIT);
    JUDGE("two pointers' sum", MOVX(2, 10), ALUX(BPF_ADD, 2, 1), END);
    JUDGE("two pointers' distance", MOVX(2, 10), MOVX(3, 10), ALU(BPF_ADD, 3, -8), ALUX(BPF_SUB, 2, 3), MOVX(0, 2), EXIT);
    JUDGE("a number less a pointer", MOV(2, 1), ALUX(BPF_SUB, 2, 10), END);
    JUDGE("a pointer shifted", MOVX(2, 10), ALU(BPF_LSH, 2, 1), END);
    JUDGE("a pointer masked", MOVX(2, 10), ALU(BPF_AND, 2, -8), END);
    JUDGE("less than the stack's", MOVX(2, 10), ALU(BPF_SUB, 2, 8), END);
    JUDGE("half of a pointer", INSN(BPF_ALU | BPF_ADD | BPF_K, 1, 0, 0, 1), END);
    JUDGE("a pointer and much", MOVX(2, 10), ALU(BPF_ADD, 2, 1 << 30), END);
    JUDGE("a pointer and what is not known", MOVX(2, 10), LOAD(BPF_DW, 3, 1, 0), ALUX(BPF_ADD, 2, 3), END);
}

static void stack(void) {
    JUDGE("a store above the stack", STORE(BPF_DW, 10, 0, 1), END);
    JUDGE("a store at its top", STORE(BPF_DW, 10, -8, 1), END);
    JUDGE("a store at its bottom", STORE(BPF_DW, 10, -512, 1), END);
    JUDGE("a store below it", STORE(BPF_DW, 10, -520, 1), END);
    JUDGE("a store that is not aligned", STORE(BPF_DW, 10, -12, 1), END);
    JUDGE("a load that is not aligned", LOAD(BPF_W, 0, 10, -6), END);
    JUDGE("what has not been written", LOAD(BPF_DW, 0, 10, -8), END);
    JUDGE("what has been", STORE(BPF_DW, 10, -8, 5), LOAD(BPF_DW, 0, 10, -8), EXIT);
    JUDGE("a part of it", STORE(BPF_DW, 10, -8, 0x1234), LOAD(BPF_B, 0, 10, -7), EXIT);
    JUDGE("a pointer on the stack", STOREX(BPF_DW, 10, 1, -8), LOAD(BPF_DW, 2, 10, -8), LOAD(BPF_DW, 0, 2, 8), EXIT);
    JUDGE("half of one stored", STOREX(BPF_W, 10, 1, -8), END);
    JUDGE("half of one loaded", STOREX(BPF_DW, 10, 1, -8), LOAD(BPF_W, 0, 10, -8), END);
    JUDGE("one that was overwritten", STOREX(BPF_DW, 10, 1, -8), STORE(BPF_B, 10, -8, 1), LOAD(BPF_DW, 2, 10, -8),
          LOAD(BPF_DW, 0, 2, 0), EXIT);
    JUDGE("at an unknown offset", STORE(BPF_DW, 10, -8, 3), STORE(BPF_DW, 10, -16, 3), LOAD(BPF_DW, 2, 1, 0),
          ALU(BPF_AND, 2, 8), MOVX(3, 10), ALUX(BPF_ADD, 3, 2), LOAD(BPF_DW, 0, 3, -16), EXIT);
    JUDGE("at an unknown offset above it", LOAD(BPF_DW, 2, 1, 0), ALU(BPF_AND, 2, 8), MOVX(3, 10), ALUX(BPF_ADD, 3, 2),
          LOAD(BPF_DW, 0, 3, -8), EXIT);
    JUDGE("a store at an unknown offset over a pointer", STOREX(BPF_DW, 10, 1, -8), LOAD(BPF_DW, 2, 1, 0),
          ALU(BPF_AND, 2, 8), MOVX(3, 10), ALUX(BPF_ADD, 3, 2), STORE(BPF_DW, 3, -16, 1), LOAD(BPF_DW, 2, 10, -8),
          LOAD(BPF_DW, 0, 2, 0), EXIT);
}

static void values(void) {
    JUDGE("a value without a check", LOOKUP(array, 0), LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("a value", FOUND(array, 1), LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("an element that is not there", FOUND(array, 9), LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("a copy of a checked one", LOOKUP(array, 1), MOVX(6, 0), OR_EXIT, LOAD(BPF_DW, 0, 6, 0), EXIT);
    JUDGE("checked the other way round", LOOKUP(array, 1), JUMP(BPF_JEQ, 0, 0, 1), MOV(0, 1), LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("moved before it is checked", LOOKUP(array, 1), ALU(BPF_ADD, 0, 4), OR_EXIT, END);
    JUDGE("its end", FOUND(array, 1), LOAD(BPF_DW, 0, 0, 8), EXIT);
    JUDGE("beyond its end", FOUND(array, 1), LOAD(BPF_DW, 0, 0, 16), EXIT);
    JUDGE("across its end", FOUND(array, 1), LOAD(BPF_DW, 0, 0, 12), EXIT);
    JUDGE("not aligned", FOUND(array, 1), LOAD(BPF_DW, 0, 0, 3), MOV(0, 1), EXIT);
    JUDGE("before its beginning", FOUND(array, 1), LOAD(BPF_DW, 0, 0, -8), EXIT);
    JUDGE("below it", FOUND(array, 1), ALU(BPF_ADD, 0, -8), LOAD(BPF_DW, 0, 0, 8), EXIT);
    JUDGE("at what is not known", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), EXIT);
    JUDGE("at what is masked", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), ALU(BPF_AND, 2, 15), ALUX(BPF_ADD, 0, 2),
          LOAD(BPF_B, 0, 0, 0), EXIT);
    JUDGE("at what is masked too widely", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), ALU(BPF_AND, 2, 16),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), EXIT);
    JUDGE("at what has been compared", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), JUMP(BPF_JGT, 2, 15, 2),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("at what has been compared as signed", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), JUMP(BPF_JSGT, 2, 15, 2),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("at what has been compared on both sides", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), JUMP(BPF_JSGT, 2, 15, 3),
          JUMP(BPF_JSLT, 2, 0, 2), ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("whose copy has been compared", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), MOVX(3, 2), JUMP(BPF_JGT, 3, 15, 2),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("by another register", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), MOV(3, 16), JUMPX(BPF_JGE, 2, 3, 2),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("32 bits compared", FOUND(array, 1), LOAD(BPF_W, 2, 0, 0), INSN(BPF_JMP32 | BPF_JGT | BPF_K, 2, 0, 2, 15),
          ALUX(BPF_ADD, 0, 2), LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("shifted", FOUND(array, 1), LOAD(BPF_DW, 2, 0, 0), ALU(BPF_RSH, 2, 60), ALUX(BPF_ADD, 0, 2),
          LOAD(BPF_B, 0, 0, 0), MOV(0, 4), EXIT);
    JUDGE("a loop over a value", FOUND(array, 1), MOV(2, 0), MOV(3, 0), MOVX(4, 0), ALUX(BPF_ADD, 4, 2),
          LOAD(BPF_B, 5, 4, 0), ALUX(BPF_ADD, 3, 5), ALU(BPF_ADD, 2, 1), JUMP(BPF_JLT, 2, 16, -6), MOVX(0, 3), EXIT);
    JUDGE("a loop over more than a value", FOUND(array, 1), MOV(2, 0), MOV(3, 0), MOVX(4, 0), ALUX(BPF_ADD, 4, 2),
          LOAD(BPF_B, 5, 4, 0), ALUX(BPF_ADD, 3, 5), ALU(BPF_ADD, 2, 1), JUMP(BPF_JLT, 2, 17, -6), MOVX(0, 3), EXIT);
    JUDGE("an atomic addition", FOUND(array, 2), MOV(2, 5), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 2, 0, BPF_ADD),
          LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("one that is not aligned", FOUND(array, 2), MOV(2, 5), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 2, 4, BPF_ADD), END);
    JUDGE("one of 2 bytes", FOUND(array, 2), MOV(2, 5), INSN(BPF_STX | BPF_ATOMIC | BPF_H, 0, 2, 0, BPF_ADD), END);
    JUDGE("an atomic operation that is none", FOUND(array, 2), MOV(2, 5),
          INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 2, 0, BPF_SUB), END);
    JUDGE("what programs only read", FOUND(readonly, 0), LOAD(BPF_DW, 0, 0, 0), EXIT);
    JUDGE("a store there", FOUND(readonly, 0), STORE(BPF_DW, 0, 0, 1), END);
}

static void contexts(void) {
    JUDGE("an argument", LOAD(BPF_DW, 0, 1, 8), EXIT);
    JUDGE("the last argument", LOAD(BPF_DW, 0, 1, 88), EXIT);
    JUDGE("one argument more", LOAD(BPF_DW, 0, 1, 96), EXIT);
    JUDGE("before the context", LOAD(BPF_DW, 0, 1, -8), EXIT);
    JUDGE("half of an argument", LOAD(BPF_W, 0, 1, 8), EXIT);
    JUDGE("across arguments", LOAD(BPF_DW, 0, 1, 4), EXIT);
    JUDGE("a store to the context", STORE(BPF_DW, 1, 0, 1), END);
    JUDGE("an atomic operation there", MOV(2, 1), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, 0, BPF_ADD), END);
    JUDGE("a moved context", ALU(BPF_ADD, 1, 8), LOAD(BPF_DW, 0, 1, 0), EXIT);
    JUDGE("at what is not known", LOAD(BPF_DW, 2, 1, 0), ALU(BPF_AND, 2, 8), ALUX(BPF_ADD, 1, 2), LOAD(BPF_DW, 0, 1, 0),
          EXIT);
    JUDGE_AS(BPF_PROG_TYPE_TRACEPOINT, "a tracepoint's field", LOAD(BPF_W, 0, 1, 8), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_TRACEPOINT, "its hidden pointer", LOAD(BPF_DW, 0, 1, 0), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_TRACEPOINT, "its last byte", LOAD(BPF_B, 0, 1, 8191), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_TRACEPOINT, "one byte more", LOAD(BPF_B, 0, 1, 8192), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_PERF_EVENT, "a register", LOAD(BPF_DW, 0, 1, 0), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_PERF_EVENT, "half a register", LOAD(BPF_W, 0, 1, 0), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_PERF_EVENT, "far beyond it", LOAD(BPF_DW, 0, 1, 1024), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_KPROBE, "a probe's register", LOAD(BPF_DW, 0, 1, 8), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_KPROBE, "half of it", LOAD(BPF_W, 0, 1, 8), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_KPROBE, "its end", LOAD(BPF_DW, 0, 1, 1024), EXIT);
    JUDGE_AS(BPF_PROG_TYPE_SOCKET_FILTER, "a filter of everything", MOV(0, 0), EXIT);
}

#define HERE(dst, off) MOVX(dst, 10), ALU(BPF_ADD, dst, off)

static void helpers(void) {
    JUDGE("a helper that is none", CALL(10000), EXIT);
    JUDGE("a helper of networks", MOV(2, 0), MOV(3, 0), MOV(4, 0), MOV(5, 0), CALL(BPF_FUNC_skb_store_bytes), EXIT);
    JUDGE("reserved fields of a call", INSN(BPF_JMP | BPF_CALL, 1, 0, 0, BPF_FUNC_ktime_get_ns), EXIT);
    JUDGE("a key that is a number", MAP(1, array), MOV(2, 5), CALL(BPF_FUNC_map_lookup_elem), END);
    JUDGE("a map that is a number", MOV(1, 5), HERE(2, -4), CALL(BPF_FUNC_map_lookup_elem), END);
    JUDGE("a map that is a context", HERE(2, -4), CALL(BPF_FUNC_map_lookup_elem), END);
    JUDGE("a key across the stack's end", MAP(1, array), HERE(2, -2), CALL(BPF_FUNC_map_lookup_elem), END);
    JUDGE("a key that is not written", MAP(1, array), HERE(2, -4), CALL(BPF_FUNC_map_lookup_elem), END);
    JUDGE("an update", STORE(BPF_W, 10, -4, 2), STORE(BPF_DW, 10, -16, 70), STORE(BPF_DW, 10, -24, 7), MAP(1, array), HERE(2, -4),
          HERE(3, -24), MOV(4, 0), CALL(BPF_FUNC_map_update_elem), FOUND(array, 2), LOAD(BPF_DW, 0, 0, 8), EXIT);
    JUDGE("an update without flags", MAP(1, array), HERE(2, -4), HERE(3, -24), CALL(BPF_FUNC_map_update_elem), END);
    JUDGE("a value across the stack's end", MAP(1, array), HERE(2, -4), HERE(3, -8), MOV(4, 0),
          CALL(BPF_FUNC_map_update_elem), END);
    JUDGE("a deletion in an array", STORE(BPF_W, 10, -4, 2), MAP(1, array), HERE(2, -4), CALL(BPF_FUNC_map_delete_elem), EXIT);
    JUDGE("a deletion of nothing", STORE(BPF_W, 10, -4, 200), MAP(1, hash), HERE(2, -4), CALL(BPF_FUNC_map_delete_elem), EXIT);
    JUDGE("an update of what has to exist", STORE(BPF_W, 10, -4, 200), STORE(BPF_DW, 10, -16, 1), MAP(1, hash), HERE(2, -4),
          HERE(3, -16), MOV(4, BPF_EXIST), CALL(BPF_FUNC_map_update_elem), EXIT);
    JUDGE("a lookup of events", LOOKUP(events, 0), END);
    JUDGE("a lookup in a ring", LOOKUP(ring, 0), END);
    JUDGE("a stack in an array", MAP(2, array), MOV(3, 0), CALL(BPF_FUNC_get_stackid), EXIT);
    JUDGE("a map's own address", MAP(2, array), LOAD(BPF_B, 0, 2, 0), MOV(0, 1), EXIT);
    JUDGE("a map moved", MAP(2, array), ALU(BPF_ADD, 2, 8), END);
    JUDGE("a number of the map's", MAP(2, array), ALU(BPF_AND, 2, 8), END);
    JUDGE("a descriptor that is none", MAP(1, 1000), END);
    JUDGE("a descriptor of something else", MAP(1, 0), END);
    JUDGE("a kind of immediate that is none", INSN(BPF_LD | BPF_DW | BPF_IMM, 1, 9, 0, 0), INSN(0, 0, 0, 0, 0), END);
    JUDGE("a value's address", INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, readonly),
          INSN(0, 0, 0, 0, 8), LOAD(BPF_DW, 0, 1, 0), EXIT);
    JUDGE("one beyond it", INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, readonly), INSN(0, 0, 0, 0, 16), END);
    JUDGE("one of an array of many", INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, array), INSN(0, 0, 0, 0, 0),
          END);
    JUDGE("one of a hash", INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, hash), INSN(0, 0, 0, 0, 0), END);
    JUDGE("a comm", HERE(1, -16), MOV(2, 16), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a comm beyond the stack", HERE(1, -8), MOV(2, 16), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a comm of no bytes", HERE(1, -16), MOV(2, 0), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a comm of a negative size", HERE(1, -16), MOV(2, -1), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a size that is not known", LOAD(BPF_DW, 2, 1, 0), HERE(1, -16), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a size that is masked", LOAD(BPF_DW, 2, 1, 0), ALU(BPF_AND, 2, 15), ALU(BPF_OR, 2, 1), HERE(1, -16),
          CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a size that may be 0", LOAD(BPF_DW, 2, 1, 0), ALU(BPF_AND, 2, 15), HERE(1, -16),
          CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("a size that is a pointer", MOVX(2, 1), HERE(1, -16), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("memory that is a number", MOV(1, 0), MOV(2, 16), CALL(BPF_FUNC_get_current_comm), EXIT);
    JUDGE("nothing to be read", HERE(1, -8), MOV(2, 0), MOV(3, 0), CALL(BPF_FUNC_probe_read_kernel), EXIT);
    JUDGE("the user's null", STORE(BPF_DW, 10, -8, 5), HERE(1, -8), MOV(2, 8), MOV(3, 0), CALL(BPF_FUNC_probe_read_user), EXIT);
    JUDGE("what is left then", STORE(BPF_DW, 10, -8, 5), HERE(1, -8), MOV(2, 8), MOV(3, 0), CALL(BPF_FUNC_probe_read_user),
          LOAD(BPF_DW, 0, 10, -8), EXIT);
    JUDGE("known no more after a helper", MOVX(6, 1), STOREX(BPF_DW, 10, 1, -8), HERE(1, -8), MOV(2, 8), MOVX(3, 10),
          CALL(BPF_FUNC_probe_read_kernel), LOAD(BPF_DW, 1, 10, -8), LOAD(BPF_DW, 0, 1, 0), EXIT);
    JUDGE("the kernel's memory", STORE(BPF_DW, 10, -16, 77), HERE(1, -8), MOV(2, 8), HERE(3, -16),
          CALL(BPF_FUNC_probe_read_kernel), LOAD(BPF_DW, 0, 10, -8), EXIT);
    JUDGE("a push", STORE(BPF_W, 10, -4, 31), MAP(1, queue), HERE(2, -4), MOV(3, 0), CALL(BPF_FUNC_map_push_elem), EXIT);
    JUDGE("a pop", MAP(1, queue), HERE(2, -4), CALL(BPF_FUNC_map_pop_elem), LOAD(BPF_W, 0, 10, -4), EXIT);
    JUDGE("a pop of nothing", MAP(1, queue), HERE(2, -4), CALL(BPF_FUNC_map_pop_elem), EXIT);
    struct bpf_insn task[] = {CALL(BPF_FUNC_get_current_task), END};
    printf("GPL only: %d\n", load_licensed(BPF_PROG_TYPE_RAW_TRACEPOINT, task, LENGTH(task), "Apache") < 0 ? errno : 0);
    printf("GPL: %d\n", load_licensed(BPF_PROG_TYPE_RAW_TRACEPOINT, task, LENGTH(task), "Dual BSD/GPL") < 0 ? errno : 0);
}

#define RESERVE(size) MAP(1, ring), MOV(2, size), MOV(3, 0), CALL(BPF_FUNC_ringbuf_reserve)
#define SUBMIT MOV(2, 0), CALL(BPF_FUNC_ringbuf_submit)

static void references(void) {
    JUDGE("a record that is submitted", RESERVE(8), OR_EXIT, STORE(BPF_DW, 0, 0, 6), MOVX(1, 0), SUBMIT, END);
    JUDGE("one that is discarded", RESERVE(8), OR_EXIT, MOVX(1, 0), MOV(2, 0), CALL(BPF_FUNC_ringbuf_discard), END);
    JUDGE("one that is kept", RESERVE(8), OR_EXIT, END);
    JUDGE("one that is not checked", RESERVE(8), MOVX(1, 0), SUBMIT, END);
    JUDGE("one that is forgotten before it is checked", RESERVE(8), END);
    JUDGE("beyond its end", RESERVE(8), OR_EXIT, STORE(BPF_DW, 0, 8, 6), MOVX(1, 0), SUBMIT, END);
    JUDGE("submitted twice", RESERVE(8), OR_EXIT, MOVX(6, 0), MOVX(1, 0), SUBMIT, MOVX(1, 6), SUBMIT, END);
    JUDGE("written when it is gone", RESERVE(8), OR_EXIT, MOVX(6, 0), MOVX(1, 0), SUBMIT, STORE(BPF_DW, 6, 0, 1), END);
    JUDGE("a moved record", RESERVE(8), OR_EXIT, MOVX(1, 0), ALU(BPF_ADD, 1, 4), SUBMIT, END);
    JUDGE("a value as a record", FOUND(array, 0), MOVX(1, 0), SUBMIT, END);
    JUDGE("a size that is not known", LOAD(BPF_DW, 2, 1, 0), MAP(1, ring), MOV(3, 0), CALL(BPF_FUNC_ringbuf_reserve), END);
    JUDGE("larger than the ring", RESERVE(8192), OR_EXIT, MOVX(1, 0), SUBMIT, END);
    JUDGE("with flags", MAP(1, ring), MOV(2, 8), MOV(3, 1), CALL(BPF_FUNC_ringbuf_reserve), OR_EXIT, MOVX(1, 0), SUBMIT, END);
    JUDGE("in a map that is none", MAP(1, array), MOV(2, 8), MOV(3, 0), CALL(BPF_FUNC_ringbuf_reserve), END);
    JUDGE("output", STORE(BPF_DW, 10, -8, 1), MAP(1, ring), HERE(2, -8), MOV(3, 8), MOV(4, 0), CALL(BPF_FUNC_ringbuf_output), EXIT);
    JUDGE("how much there is", MAP(1, ring), MOV(2, 0), CALL(BPF_FUNC_ringbuf_query), EXIT);
    JUDGE("how large it is", MAP(1, ring), MOV(2, 1), CALL(BPF_FUNC_ringbuf_query), EXIT);
}

// The first function calls each of the others
static void many_functions(const char *what, int others) {
    struct bpf_insn program[3 * 256 + 1], *end = program;
    for (int i = 0; i < others; i++, end++) *end = CALL_OWN(others + i);
    *end++ = EXIT;
    for (int i = 0; i < others; i++, end += 2) end[0] = MOV(0, i), end[1] = EXIT;
    judge_as(BPF_PROG_TYPE_RAW_TRACEPOINT, what, program, end - program);
}

static void functions(void) {
    many_functions("255 others", 255);
    many_functions("256 others", 256);
    JUDGE("a function", MOV(1, 5), CALL_OWN(1), EXIT, MOVX(0, 1), ALU(BPF_ADD, 0, 2), EXIT);
    JUDGE("one that nobody calls", END, MOV(0, 1), EXIT);
    JUDGE("one that calls itself", CALL_OWN(-1), EXIT);
    JUDGE("one beyond the end", CALL_OWN(5), END);
    JUDGE("its caller's registers", MOV(6, 5), CALL_OWN(1), EXIT, MOVX(0, 6), EXIT);
    JUDGE("what it leaves alone", MOV(6, 5), CALL_OWN(2), MOVX(0, 6), EXIT, MOV(6, 9), MOV(0, 0), EXIT);
    JUDGE("its caller's stack", STORE(BPF_DW, 10, -8, 4), HERE(1, -8), CALL_OWN(2), LOAD(BPF_DW, 0, 10, -8), EXIT,
          STORE(BPF_DW, 1, 0, 44), MOV(0, 0), EXIT);
    JUDGE("its own stack returned", CALL_OWN(1), END, MOVX(0, 10), EXIT);
    JUDGE("a jump into another", CALL_OWN(2), GOTO(1), EXIT, MOV(0, 1), EXIT);
    JUDGE("too much stack together", STORE(BPF_DW, 10, -504, 1), CALL_OWN(1), EXIT, STORE(BPF_DW, 10, -504, 1), END);
    JUDGE("called nine deep", CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT,
          CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, MOV(0, 3), EXIT);
    JUDGE("called eight deep", CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, CALL_OWN(1), EXIT,
          CALL_OWN(1), EXIT, CALL_OWN(1), EXIT, MOV(0, 3), EXIT);
    JUDGE("called by itself, with too much stack together", LOAD(BPF_DW, 1, 1, 0), CALL_OWN(1), EXIT,
          STORE(BPF_DW, 10, -128, 1), JUMP(BPF_JNE, 1, 7, 2), MOV(0, 3), EXIT, CALL_OWN(-5), MOV(0, 4), EXIT);
    JUDGE("a helper's loop", STORE(BPF_DW, 10, -8, 0), MOV(1, 10), ADDRESS_OWN(2, 6), HERE(3, -8), MOV(4, 0),
          CALL(BPF_FUNC_loop), LOAD(BPF_DW, 0, 10, -8), EXIT, LOAD(BPF_DW, 3, 2, 0), ALUX(BPF_ADD, 3, 1), STOREX(BPF_DW, 2, 3, 0),
          END);
    JUDGE("one that is left", STORE(BPF_DW, 10, -8, 0), MOV(1, 10), ADDRESS_OWN(2, 5), HERE(3, -8), MOV(4, 0),
          CALL(BPF_FUNC_loop), EXIT, JUMP(BPF_JLT, 1, 4, 2), MOV(0, 1), EXIT, END);
    JUDGE("one that returns 2", MOV(1, 10), ADDRESS_OWN(2, 4), MOV(3, 0), MOV(4, 0), CALL(BPF_FUNC_loop), EXIT, MOV(0, 2), EXIT);
    JUDGE("one whose function is a number", MOV(1, 10), MOV(2, 4), MOV(3, 0), MOV(4, 0), CALL(BPF_FUNC_loop), EXIT);
    JUDGE("one that spoils what is known", FOUND(array, 1), STOREX(BPF_DW, 10, 0, -16), MOV(1, 3), ADDRESS_OWN(2, 7), HERE(3, -16),
          MOV(4, 0), CALL(BPF_FUNC_loop), LOAD(BPF_DW, 2, 10, -16), LOAD(BPF_DW, 0, 2, 0), EXIT, STORE(BPF_DW, 2, 0, 0), END);
    JUDGE("too many turns", MOV(1, (1 << 23) + 1), ADDRESS_OWN(2, 4), MOV(3, 0), MOV(4, 0), CALL(BPF_FUNC_loop), EXIT, END);
    JUDGE("each element", STORE(BPF_DW, 10, -8, 0), MAP(1, array), ADDRESS_OWN(2, 6), HERE(3, -8), MOV(4, 0),
          CALL(BPF_FUNC_for_each_map_elem), LOAD(BPF_DW, 0, 10, -8), EXIT, LOAD(BPF_W, 3, 2, 0), LOAD(BPF_DW, 5, 4, 0),
          ALUX(BPF_ADD, 5, 3), STOREX(BPF_DW, 4, 5, 0), END);
    JUDGE("a key that is written", MAP(1, array), ADDRESS_OWN(2, 4), MOV(3, 0), MOV(4, 0), CALL(BPF_FUNC_for_each_map_elem), EXIT,
          STORE(BPF_W, 2, 0, 0), END);
    JUDGE("beyond an element's value", MAP(1, array), ADDRESS_OWN(2, 4), MOV(3, 0), MOV(4, 0), CALL(BPF_FUNC_for_each_map_elem),
          EXIT, LOAD(BPF_DW, 0, 3, 16), END);
}

static void logs(void) {
    struct bpf_insn program[] = {MOVX(0, 2), EXIT};
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = LENGTH(program);
    attr.license = (uintptr_t) "GPL";
    say("no log", bpf(BPF_PROG_LOAD, &attr));
    attr.log_level = 1;
    say("a level alone", bpf(BPF_PROG_LOAD, &attr));
    attr.log_buf = (uintptr_t)verifier_log;
    say("no size", bpf(BPF_PROG_LOAD, &attr));
    attr.log_size = 10;
    say("a log that is too short", bpf(BPF_PROG_LOAD, &attr));
    printf("%zu characters\n", strlen(verifier_log));
    attr.log_level = 9;
    say("its beginning", bpf(BPF_PROG_LOAD, &attr));
    printf("%zu characters\n", strlen(verifier_log));
    attr.log_level = 0;
    say("no level", bpf(BPF_PROG_LOAD, &attr));
    attr.log_level = 64;
    say("a level that is none", bpf(BPF_PROG_LOAD, &attr));
    attr.log_level = 1;
    attr.log_size = sizeof verifier_log;
    say("a log", bpf(BPF_PROG_LOAD, &attr));
    printf("it has what is wrong: %d\n", strstr(verifier_log, "R2 !read_ok") != 0);
    attr.insns = 1;
    say("no program", bpf(BPF_PROG_LOAD, &attr));
    attr.insns = (uintptr_t)program;
    attr.license = 0;
    say("no license", bpf(BPF_PROG_LOAD, &attr));
    attr.license = (uintptr_t) "GPL";
    attr.prog_flags = 1 << 30;
    say("a flag that is none", bpf(BPF_PROG_LOAD, &attr));
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    array = new_map(BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0);
    hash = new_map(BPF_MAP_TYPE_HASH, 4, 16, 4, 0);
    ring = new_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
    events = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 4, 0);
    stacks = new_map(BPF_MAP_TYPE_STACK_TRACE, 4, 80, 4, 0);
    readonly = new_map(BPF_MAP_TYPE_ARRAY, 4, 16, 1, BPF_F_RDONLY_PROG);
    queue = new_map(BPF_MAP_TYPE_QUEUE, 0, 4, 2, 0);
    for (int key = 0; key < 4; key++) {
        uint64_t value[2] = {key * 0x101 + 2, key};
        element(BPF_MAP_UPDATE_ELEM, array, &key, value, 0);
        if (!key) element(BPF_MAP_UPDATE_ELEM, readonly, &key, (uint64_t[2]){41, 42}, 0);
    }
    forms();
    registers();
    stack();
    values();
    contexts();
    helpers();
    references();
    functions();
    logs();
}
