// A link of a program to many functions of the kernel: on arm64, 6.12 has no fprobes, and no such links.

#include <fcntl.h>
#include "bpf.h"

enum { KPROBE_MULTI = 42, RETURNS = 1 };

struct kprobe_multi {
    uint32_t program, target, type, flags;
    uint32_t multi_flags, count;
    uint64_t symbols, addresses, cookies;
};

#ifdef __x86_64__
#define GETPPID "__x64_sys_getppid"
#define GETUID "__x64_sys_getuid"
#else
#define GETPPID "__arm64_sys_getppid"
#define GETUID "__arm64_sys_getuid"
#endif

static int call(int command, const void* data, size_t size) {
    union bpf_attr attr = {0};
    memcpy(&attr, data, size);
    return bpf(command, &attr);
}

static int loaded_for(int attach_type, int map) {
    struct bpf_insn program[] = {
        MOVX(6, 1),
        CALL(BPF_FUNC_get_current_pid_tgid),
        ALU(BPF_RSH, 0, 32),
        JUMP(BPF_JNE, 0, getpid(), 18),
        MOVX(1, 6),
        CALL(BPF_FUNC_get_attach_cookie),
        MOVX(7, 0),
        MOVX(1, 6),
        CALL(BPF_FUNC_get_func_ip),
        MOVX(8, 0),
        STORE(BPF_W, 10, -4, 0),
        MOVX(2, 10),
        ALU(BPF_ADD, 2, -4),
        MAP(1, map),
        CALL(BPF_FUNC_map_lookup_elem),
        JUMP(BPF_JEQ, 0, 0, 5),
        LOAD(BPF_DW, 1, 0, 0),
        ALU(BPF_ADD, 1, 1),
        STOREX(BPF_DW, 0, 1, 0),
        STOREX(BPF_DW, 0, 7, 8),
        STOREX(BPF_DW, 0, 8, 16),
        MOV(0, 0),
        EXIT,
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_KPROBE};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = LENGTH(program);
    attr.license = (uintptr_t)"GPL";
    attr.expected_attach_type = attach_type;
    return bpf(BPF_PROG_LOAD, &attr);
}

static uint64_t address_of(const char* symbol) {
    FILE* symbols = fopen("/proc/kallsyms", "r");
    unsigned long address, found = 0;
    char name[300], line[400];
    while (!found && fgets(line, sizeof line, symbols))
        if (sscanf(line, "%lx %*c %299s", &address, name) == 2 && strcmp(name, symbol) == 0) found = address;
    fclose(symbols);
    return found;
}

static uint64_t addresses[2];

static void told(const char* what, int map) {
    uint64_t value[3] = {0}, none[3] = {0};
    uint32_t key = 0;
    element(BPF_MAP_LOOKUP_ELEM, map, &key, value, 0);
    const char* where = !value[2] ? "nowhere" : value[2] == addresses[0] ? "getppid" : "another";
    printf("%s: %d times, cookie %d, %s\n", what, (int)value[0], (int)value[1], where);
    element(BPF_MAP_UPDATE_ELEM, map, &key, none, 0);
}

static void calls(void) {
    for (int i = 0; i < 3; i++) syscall(__NR_getppid);
}

static void information(int link) {
    struct {
        uint32_t type, id, program, pad;
        uint64_t addresses;
        uint32_t count, flags;
        uint64_t missed, cookies;
    } info = {0};
    uint64_t found[3] = {0}, cookies[3] = {0};
    union bpf_attr attr = {0};
    attr.info.bpf_fd = link;
    attr.info.info_len = sizeof info;
    attr.info.info = (uintptr_t)&info;
    info.addresses = (uintptr_t)found, info.cookies = (uintptr_t)cookies, info.count = 3;
    say("information", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    int at = found[1] == addresses[0];
    printf("type %u, count %u, flags %u, missed %d, cookie %d, found %d\n", info.type, info.count, info.flags,
           (int)info.missed, (int)cookies[at], found[at] == addresses[0]);
    attr.info.info_len = sizeof info, info.count = 1;
    say("for one of two", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    attr.info.info_len = sizeof info, info.count = 0;
    say("for none", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
}

int main(void) {
    int map = new_map(BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0);
    int program = loaded_for(KPROBE_MULTI, map), plain = loaded_for(0, map), link;
    const char *symbols[3] = {GETPPID, GETUID}, *twice[2] = {GETPPID, GETPPID},
               *unknown[2] = {GETPPID, "nothing_is_so"};
    uint64_t cookies[2] = {11, 22};
    addresses[0] = address_of(GETPPID), addresses[1] = address_of(GETUID);
    uint64_t inside[2] = {addresses[0], addresses[1] + 1}, nowhere[1] = {4096};
    struct kprobe_multi good = {.program = program, .type = KPROBE_MULTI, .count = 2}, attr;
    good.symbols = (uintptr_t)symbols, good.cookies = (uintptr_t)cookies;
#define TRY(what, ...)                                    \
    do {                                                  \
        attr = good;                                      \
        __VA_ARGS__;                                      \
        link = call(BPF_LINK_CREATE, &attr, sizeof attr); \
        say(what, link);                                  \
        if (link >= 0) close(link);                       \
    } while (0)
    TRY("two functions");
    TRY("by their addresses", attr.symbols = 0, attr.addresses = (uintptr_t)addresses);
    TRY("by both", attr.addresses = (uintptr_t)addresses);
    TRY("by neither", attr.symbols = 0);
    TRY("none", attr.count = 0);
    TRY("too many", attr.count = (1 << 20) + 1);
    TRY("of another attach type", attr.type = 41);
    TRY("of uprobes' attach type", attr.type = 48);
    TRY("a program of no attach type", attr.program = plain);
    TRY("flags of links", attr.flags = 1);
    TRY("flags", attr.multi_flags = 2);
    TRY("bad symbols", attr.symbols = 1);
    TRY("bad names", attr.count = 3);
    TRY("bad addresses", attr.symbols = 0, attr.addresses = 1);
    TRY("bad cookies", attr.cookies = 1);
    TRY("a name that is unknown", attr.symbols = (uintptr_t)unknown);
    TRY("a name twice", attr.symbols = (uintptr_t)twice);
    TRY("within a function", attr.symbols = 0, attr.addresses = (uintptr_t)inside);
    TRY("nowhere", attr.symbols = 0, attr.addresses = (uintptr_t)nowhere, attr.count = 1);
    if ((link = call(BPF_LINK_CREATE, &good, sizeof good)) < 0) return 0;
    calls();
    told("entered", map);
    information(link);
    close(link);
    calls();
    told("closed", map);
    attr = good, attr.multi_flags = RETURNS;
    link = call(BPF_LINK_CREATE, &attr, sizeof attr);
    calls();
    told("returned", map);
    close(link);
    attr = good, attr.cookies = attr.symbols = 0, attr.addresses = (uintptr_t)addresses;
    link = call(BPF_LINK_CREATE, &attr, sizeof attr);
    calls();
    told("without cookies", map);
    return 0;
}
