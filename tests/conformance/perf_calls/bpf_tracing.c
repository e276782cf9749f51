// Programs of type TRACING: of functions of the kernel by its BTF, of other programs, of tracepoints' arguments.

#include "bpf.h"
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifdef __x86_64__
#define GETPGID "__x64_sys_getpgid"
#define FIRST_OF_REGS 112  // di
#else
#define GETPGID "__arm64_sys_getpgid"
#define FIRST_OF_REGS 0
#endif
#define PROGRAM(...) ((struct bpf_insn[]){__VA_ARGS__}), LENGTH(((struct bpf_insn[]){__VA_ARGS__}))
#define RETURN(value) MOV(0, value), EXIT
#define FILE_NAME "/proc/self/comm"

enum { OPENS, NAME, FLAGS, RESULT, ARGUMENT, RETURNED, COUNT, COOKIE, PID, INNER, ORDER, FORKS, COUNTERS };

static int counters;
static unsigned char *types;
static const char *strings;
static unsigned type_bytes;

// Adds R6 to a counter; uses R0 to R5
#define ADD_R6(counter)                                                                                     \
    STORE(BPF_W, 10, -4, counter), MOVX(2, 10), ALU(BPF_ADD, 2, -4), MAP(1, counters),                      \
        CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 1), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 6, 0, BPF_ADD)
// Goes on if this process executes; uses R0, R1 to R5, R7, which keeps the context
#define OF_THIS_PROCESS \
    MOVX(7, 1), CALL(BPF_FUNC_get_current_pid_tgid), ALU(BPF_RSH, 0, 32), JUMP(BPF_JEQ, 0, getpid(), 2), RETURN(0)
#define COUNT_IN(counter) MOV(6, 1), ADD_R6(counter)

static long taken(int counter) {
    long value = -1, zero = 0;
    element(BPF_MAP_LOOKUP_ELEM, counters, &counter, &value, 0);
    element(BPF_MAP_UPDATE_ELEM, counters, &counter, &zero, 0);
    return value;
}

static void read_types(void) {
    static unsigned char data[16 << 20];
    int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY), size = 0, got;
    while ((got = read(fd, data + size, sizeof data - size)) > 0) size += got;
    close(fd);
    struct btf_header *header = (void *)data;
    types = data + header->hdr_len + header->type_off;
    type_bytes = header->type_len;
    strings = (char *)data + header->hdr_len + header->str_off;
    printf("magic %x, version %d\n", header->magic, header->version);
}

static const struct btf_type *type_of(int kind, const char *name, int *number) {
    static const int each[] = {[BTF_KIND_STRUCT] = 12, [BTF_KIND_UNION] = 12, [BTF_KIND_ENUM] = 8,
                               [BTF_KIND_FUNC_PROTO] = 8, [BTF_KIND_DATASEC] = 12, [BTF_KIND_ENUM64] = 12};
    static const int fixed[] = {[BTF_KIND_INT] = 4, [BTF_KIND_ARRAY] = 12, [BTF_KIND_VAR] = 4,
                                [BTF_KIND_DECL_TAG] = 4, [BTF_KIND_ENUM64] = 0};
    unsigned at = 0;
    for (*number = 1; at < type_bytes; ++*number) {
        struct btf_type *type = (void *)(types + at);
        int found = BTF_INFO_KIND(type->info);
        if (found == kind && !strcmp(strings + type->name_off, name)) return type;
        at += sizeof *type + fixed[found] + each[found] * BTF_INFO_VLEN(type->info);
    }
    *number = 0;
    return 0;
}

static int number_of(int kind, const char *name) {
    int number;
    type_of(kind, name, &number);
    return number;
}

static int offset_of(const char *structure, const char *member) {
    int number;
    const struct btf_type *type = type_of(BTF_KIND_STRUCT, structure, &number);
    const struct btf_member *members = (void *)(type + 1);
    for (int i = 0; i < BTF_INFO_VLEN(type->info); i++)
        if (!strcmp(strings + members[i].name_off, member)) return members[i].offset / 8;
    return -1;
}

static int load_at(int kind, int number, int of, const struct bpf_insn *program, int length) {
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_TRACING};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = length;
    attr.license = (uintptr_t) "GPL";
    attr.log_buf = (uintptr_t)verifier_log;
    attr.log_size = sizeof verifier_log;
    attr.log_level = 1;
    attr.expected_attach_type = kind;
    attr.attach_btf_id = number;
    attr.attach_prog_fd = of;
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0 && getenv("LOG")) fprintf(stderr, "%s", verifier_log);
    return fd;
}

static int load_for(int kind, const char *name, const struct bpf_insn *program, int length) {
    return load_at(kind, number_of(BTF_KIND_FUNC, name), 0, program, length);
}

static int attach(int program, const char *name) {
    union bpf_attr attr = {0};
    attr.raw_tracepoint.prog_fd = program;
    attr.raw_tracepoint.name = (uintptr_t)name;
    return bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static int link_program(int program, int kind, uint64_t cookie) {
    union bpf_attr attr = {0};
    attr.link_create.prog_fd = program;
    attr.link_create.attach_type = kind;
    attr.link_create.tracing.cookie = cookie;
    return bpf(BPF_LINK_CREATE, &attr);
}

static void open_times(int times) {
    for (int i = 0; i < times; i++) close(open(FILE_NAME, O_RDONLY | O_CLOEXEC));
}

static void opens(void) {
    int program = load_for(BPF_TRACE_FENTRY, "do_sys_openat2",
                           PROGRAM(OF_THIS_PROCESS, COUNT_IN(OPENS), RETURN(0)));
    say("fentry of do_sys_openat2 is loaded", program);
    open_times(2);
    int link = attach(program, 0);
    say("attached", link);
    say("again", attach(program, 0));
    say("by a name", attach(program, "do_sys_openat2"));
    open_times(5);
    close(link);
    open_times(3);
    printf("opens: %ld\n", taken(OPENS));
    link = link_program(program, BPF_TRACE_FENTRY, 0);
    say("linked", link);
    say("linked as fexit", link_program(program, BPF_TRACE_FEXIT, 0));
    close(program);
    open_times(4);
    struct bpf_link_info info = {0};
    union bpf_attr attr = {0};
    attr.info.bpf_fd = link;
    attr.info.info_len = sizeof info;
    attr.info.info = (uintptr_t)&info;
    say("information", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
    printf("link of type %d, attached as %d, in types %d, by the function's number: %d\n", info.type,
           info.tracing.attach_type, info.tracing.target_obj_id,
           info.tracing.target_btf_id == number_of(BTF_KIND_FUNC, "do_sys_openat2"));
    close(link);
    printf("opens: %ld\n", taken(OPENS));
}

static int loaded_and_attached(int kind, const char *name, const struct bpf_insn *program, int length) {
    int loaded = load_for(kind, name, program, length);
    if (loaded < 0) return loaded;
    int link = link_program(loaded, kind, 4711);
    close(loaded);
    return link;
}

static void arguments(void) {
    int link = loaded_and_attached(BPF_TRACE_FENTRY, "do_sys_openat2", PROGRAM(
        OF_THIS_PROCESS,
        LOAD(BPF_W, 6, 7, 0), ADD_R6(ARGUMENT),
        MOVX(1, 10), ALU(BPF_ADD, 1, -16), MOV(2, 8), LOAD(BPF_DW, 3, 7, 8), CALL(BPF_FUNC_probe_read_user),
        LOAD(BPF_DW, 6, 10, -16), ADD_R6(NAME),
        LOAD(BPF_DW, 1, 7, 16), LOAD(BPF_DW, 6, 1, 0), ADD_R6(FLAGS),
        MOVX(1, 7), CALL(BPF_FUNC_get_attach_cookie), MOVX(6, 0), ADD_R6(COOKIE),
        CALL(BPF_FUNC_get_current_task_btf), LOAD(BPF_W, 6, 0, offset_of("task_struct", "tgid")), ADD_R6(PID),
        MOVX(1, 7), CALL(BPF_FUNC_get_func_arg_cnt), MOVX(6, 0), ADD_R6(COUNT),
        MOVX(1, 7), MOVX(2, 10), ALU(BPF_ADD, 2, -16), CALL(BPF_FUNC_get_func_ret), MOVX(6, 0), ADD_R6(RETURNED),
        MOVX(1, 7), MOV(2, 3), MOVX(3, 10), ALU(BPF_ADD, 3, -16), CALL(BPF_FUNC_get_func_arg), MOVX(6, 0),
        ADD_R6(RESULT), RETURN(0)));
    say("arguments", link);
    open_times(1);
    close(link);
    long name = taken(NAME), pid = taken(PID);
    printf("directory %d, name %.8s, O_CLOEXEC %d, cookie %ld, this process %d, %ld arguments\n", (int)taken(ARGUMENT),
           (char *)&name, (taken(FLAGS) & O_CLOEXEC) != 0, taken(COOKIE), pid == getpid(), taken(COUNT));
    printf("what it will return: %ld; argument 3: %ld\n", taken(RETURNED), taken(RESULT));
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS};
    link = loaded_and_attached(BPF_TRACE_FENTRY, "do_sys_openat2",
                               PROGRAM(OF_THIS_PROCESS, LOAD(BPF_DW, 1, 7, 16), LOAD(BPF_DW, 6, 1, 16), ADD_R6(FLAGS),
                                       LOAD(BPF_DW, 1, 7, 16), MOVX(3, 1), MOVX(1, 10), ALU(BPF_ADD, 1, -8), MOV(2, 8),
                                       CALL(BPF_FUNC_probe_read_kernel), LOAD(BPF_W, 6, 10, -8), ADD_R6(RESULT),
                                       RETURN(0)));
    syscall(__NR_openat2, AT_FDCWD, FILE_NAME, &how, sizeof how);
    close(link);
    printf("resolve %ld, flags but O_LARGEFILE %ld\n", taken(FLAGS), taken(RESULT) & ~(0400000 | 0100000));
}

static void returns(void) {
    int link = loaded_and_attached(BPF_TRACE_FEXIT, "do_sys_openat2", PROGRAM(
        OF_THIS_PROCESS, LOAD(BPF_DW, 6, 7, 24), ADD_R6(RESULT), LOAD(BPF_W, 6, 7, 0), ADD_R6(ARGUMENT),
        MOVX(1, 7), MOVX(2, 10), ALU(BPF_ADD, 2, -16), CALL(BPF_FUNC_get_func_ret), MOVX(6, 0),
        LOAD(BPF_DW, 1, 10, -16), ALUX(BPF_ADD, 6, 1), ADD_R6(RETURNED),
        MOVX(1, 7), MOV(2, 0), MOVX(3, 10), ALU(BPF_ADD, 3, -16), CALL(BPF_FUNC_get_func_arg), MOVX(6, 0),
        LOAD(BPF_W, 1, 10, -16), ALUX(BPF_ADD, 6, 1), ADD_R6(PID), RETURN(0)));
    say("fexit of do_sys_openat2", link);
    open("/nowhere/at/all", O_RDONLY);
    close(link);
    printf("returned %ld and %ld, directory %d and %d\n", taken(RESULT), taken(RETURNED), (int)taken(ARGUMENT),
           (int)taken(PID));
    link = loaded_and_attached(BPF_TRACE_FEXIT, GETPGID, PROGRAM(
        OF_THIS_PROCESS, LOAD(BPF_DW, 6, 7, 8), ADD_R6(RESULT), LOAD(BPF_DW, 1, 7, 0),
        LOAD(BPF_DW, 6, 1, FIRST_OF_REGS), ADD_R6(ARGUMENT), COUNT_IN(COUNT), RETURN(0)));
    say("fexit of getpgid", link);
    syscall(__NR_getpgid, 1000000);
    close(link);
    syscall(__NR_getpgid, 1000000);
    printf("getpgid(%ld) = %ld, %ld times\n", taken(ARGUMENT), taken(RESULT), taken(COUNT));
}

// x = 10 x + digit
#define APPEND(digit)                                                                                             \
    STORE(BPF_W, 10, -4, ORDER), MOVX(2, 10), ALU(BPF_ADD, 2, -4), MAP(1, counters), CALL(BPF_FUNC_map_lookup_elem), \
        JUMP(BPF_JEQ, 0, 0, 4), LOAD(BPF_DW, 6, 0, 0), ALU(BPF_MUL, 6, 10), ALU(BPF_ADD, 6, digit),               \
        STOREX(BPF_DW, 0, 6, 0)

static void order(void) {
    int first = loaded_and_attached(BPF_TRACE_FENTRY, GETPGID, PROGRAM(OF_THIS_PROCESS, APPEND(1), RETURN(0)));
    int second = loaded_and_attached(BPF_TRACE_FENTRY, GETPGID, PROGRAM(OF_THIS_PROCESS, APPEND(2), RETURN(0)));
    int third = loaded_and_attached(BPF_TRACE_FEXIT, GETPGID, PROGRAM(OF_THIS_PROCESS, APPEND(3), RETURN(0)));
    int fourth = loaded_and_attached(BPF_TRACE_FEXIT, GETPGID, PROGRAM(OF_THIS_PROCESS, APPEND(4), RETURN(0)));
    syscall(__NR_getpgid, 0);
    printf("order %ld\n", taken(ORDER));
    close(first), close(second), close(third), close(fourth);
}

static void verdict(const char *what, int kind, const char *name, const struct bpf_insn *program, int length) {
    int loaded = load_for(kind, name, program, length);
    say(what, loaded);
    if (loaded >= 0) close(loaded);
}

static void verdicts(void) {
    const int fentry = BPF_TRACE_FENTRY, fexit = BPF_TRACE_FEXIT;
    const char *opening = "do_sys_openat2";
    verdict("returns 1", fentry, opening, PROGRAM(RETURN(1)));
    verdict("returns an argument", fentry, opening, PROGRAM(LOAD(BPF_DW, 0, 1, 0), EXIT));
    verdict("a fourth argument", fentry, opening, PROGRAM(LOAD(BPF_DW, 0, 1, 24), RETURN(0)));
    verdict("what it returns", fexit, opening, PROGRAM(LOAD(BPF_DW, 0, 1, 24), RETURN(0)));
    verdict("behind what it returns", fexit, opening, PROGRAM(LOAD(BPF_DW, 0, 1, 32), RETURN(0)));
    verdict("beyond all arguments", fentry, opening, PROGRAM(LOAD(BPF_DW, 0, 1, 96), RETURN(0)));
    verdict("half of a number", fentry, opening, PROGRAM(LOAD(BPF_W, 0, 1, 0), RETURN(0)));
    verdict("its upper half", fentry, opening, PROGRAM(LOAD(BPF_W, 0, 1, 4), RETURN(0)));
    verdict("half of a pointer", fentry, opening, PROGRAM(LOAD(BPF_W, 0, 1, 16), RETURN(0)));
    verdict("half of a string's", fentry, opening, PROGRAM(LOAD(BPF_W, 0, 1, 8), RETURN(0)));
    verdict("a write", fentry, opening, PROGRAM(STORE(BPF_DW, 1, 0, 0), RETURN(0)));
    verdict("through a string", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 8), LOAD(BPF_B, 0, 1, 0), RETURN(0)));
    verdict("a member", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), LOAD(BPF_DW, 0, 1, 8), RETURN(0)));
    verdict("part of a member", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), LOAD(BPF_H, 0, 1, 10), RETURN(0)));
    verdict("between members", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), LOAD(BPF_DW, 0, 1, 4), RETURN(0)));
    verdict("behind the members", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), LOAD(BPF_DW, 0, 1, 24), RETURN(0)));
    verdict("before them", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), LOAD(BPF_DW, 0, 1, -8), RETURN(0)));
    verdict("into a member", fentry, opening, PROGRAM(LOAD(BPF_DW, 1, 1, 16), STORE(BPF_DW, 1, 0, 0), RETURN(0)));
    verdict("a member by a number", fentry, opening,
            PROGRAM(LOAD(BPF_DW, 2, 1, 0), ALU(BPF_AND, 2, 8), LOAD(BPF_DW, 1, 1, 16), ALUX(BPF_ADD, 1, 2),
                    LOAD(BPF_DW, 0, 1, 0), RETURN(0)));
    verdict("a member of a moved one", fentry, opening,
            PROGRAM(LOAD(BPF_DW, 1, 1, 16), ALU(BPF_ADD, 1, 8), LOAD(BPF_DW, 0, 1, 0), RETURN(0)));
    verdict("one load of two kinds", fentry, opening,
            PROGRAM(LOAD(BPF_DW, 2, 1, 0), LOAD(BPF_DW, 3, 1, 16), JUMP(BPF_JEQ, 2, 0, 3), STORE(BPF_DW, 10, -8, 0),
                    MOVX(3, 10), ALU(BPF_ADD, 3, -8), LOAD(BPF_DW, 0, 3, 0), RETURN(0)));
    verdict("an object is compared", fentry, opening,
            PROGRAM(LOAD(BPF_DW, 2, 1, 16), JUMP(BPF_JEQ, 2, 0, 1), LOAD(BPF_DW, 0, 2, 0), RETURN(0)));
    verdict("an object as memory", fentry, opening,
            PROGRAM(LOAD(BPF_DW, 1, 1, 16), MOV(2, 8), CALL(BPF_FUNC_trace_printk), RETURN(0)));
    say("no number", load_at(fentry, 0, 0, PROGRAM(RETURN(0))));
    say("a number too large", load_at(fentry, 1 << 19, 0, PROGRAM(RETURN(0))));
    say("a structure", load_at(fentry, number_of(BTF_KIND_STRUCT, "task_struct"), 0, PROGRAM(RETURN(0))));
    say("a tracepoint", load_at(fentry, number_of(BTF_KIND_TYPEDEF, "btf_trace_sched_switch"), 0, PROGRAM(RETURN(0))));
    say("a function as a tracepoint",
        load_at(BPF_TRACE_RAW_TP, number_of(BTF_KIND_FUNC, opening), 0, PROGRAM(RETURN(0))));
    say("a typedef that is none", load_at(BPF_TRACE_RAW_TP, number_of(BTF_KIND_TYPEDEF, "pid_t"), 0, PROGRAM(RETURN(0))));
    say("no kind", load_at(0, number_of(BTF_KIND_FUNC, opening), 0, PROGRAM(RETURN(0))));
    say("another's descriptor", load_at(fentry, 1, counters, PROGRAM(RETURN(0))));
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_KPROBE};
    attr.insns = (uintptr_t)(struct bpf_insn[]){RETURN(0)};
    attr.insn_cnt = 2;
    attr.license = (uintptr_t) "GPL";
    attr.attach_btf_id = number_of(BTF_KIND_FUNC, opening);
    say("a kprobe's program", bpf(BPF_PROG_LOAD, &attr));
}

static void tracepoints(void) {
    int number = number_of(BTF_KIND_TYPEDEF, "btf_trace_sched_process_fork");
    int program = load_at(BPF_TRACE_RAW_TP, number, 0, PROGRAM(
        OF_THIS_PROCESS, LOAD(BPF_DW, 1, 7, 0), LOAD(BPF_W, 6, 1, offset_of("task_struct", "pid")), ADD_R6(PID),
        LOAD(BPF_DW, 1, 7, 8), LOAD(BPF_W, 6, 1, offset_of("task_struct", "tgid")), ADD_R6(FORKS),
        LOAD(BPF_DW, 1, 7, 8), LOAD(BPF_DW, 1, 1, offset_of("task_struct", "real_parent")),
        LOAD(BPF_W, 6, 1, offset_of("task_struct", "pid")), ADD_R6(INNER), RETURN(7)));
    say("tp_btf of sched_process_fork", program);
    int link = attach(program, 0);
    say("attached", link);
    int child = fork();
    if (!child) _exit(0);
    waitpid(child, 0, 0);
    close(link);
    printf("parent %d, child %d, its parent %d\n", taken(PID) == getpid(), taken(FORKS) == child,
           taken(INNER) == getpid());
    program = load_at(BPF_TRACE_RAW_TP, number_of(BTF_KIND_TYPEDEF, "btf_trace_sys_enter"), 0, PROGRAM(
        OF_THIS_PROCESS, LOAD(BPF_DW, 6, 7, 8), JUMP(BPF_JEQ, 6, __NR_getpgid, 2), RETURN(0), COUNT_IN(COUNT),
        LOAD(BPF_DW, 1, 7, 0), LOAD(BPF_DW, 6, 1, FIRST_OF_REGS), ADD_R6(ARGUMENT), RETURN(0)));
    link = link_program(program, BPF_TRACE_RAW_TP, 0);
    say("linked", link);
    syscall(__NR_getpgid, 1000000);
    close(link);
    printf("%ld calls with %ld\n", taken(COUNT), taken(ARGUMENT));
    verdict("one argument more", BPF_TRACE_RAW_TP, "", PROGRAM(RETURN(0)));
    say("a third argument", load_at(BPF_TRACE_RAW_TP, number, 0, PROGRAM(LOAD(BPF_DW, 0, 1, 16), RETURN(0))));
}

// Types of a program's own: a number, its functions `traced` and `another`, which say what they are given or not
static int own_types(int of_context) {
    struct {
        struct btf_header header;
        struct btf_type integer;
        unsigned integer_is;
        struct btf_type pointer, prototype;
        struct btf_param parameter;
        struct btf_type function, other, context;
        char strings[64];
    } types = {
        .header = {.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof types.header},
        .integer = {.name_off = 1, .info = BTF_KIND_INT << 24, .size = 4}, .integer_is = BTF_INT_SIGNED << 24 | 32,
        .pointer = {.info = BTF_KIND_PTR << 24, .type = of_context ? 6 : 1},
        .prototype = {.info = BTF_KIND_FUNC_PROTO << 24 | 1, .type = 1}, .parameter = {.name_off = 5, .type = 2},
        .function = {.name_off = 9, .info = BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, .type = 3},
        .other = {.name_off = 16, .info = BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, .type = 3},
        .context = {.name_off = 24, .info = BTF_KIND_STRUCT << 24},
    };
    memcpy(types.strings, "\0int\0ctx\0traced\0another\0bpf_raw_tracepoint_args", 48);
    types.header.type_len = (char *)types.strings - (char *)&types.integer;
    types.header.str_off = types.header.type_len;
    types.header.str_len = 48;
    union bpf_attr attr = {0};
    attr.btf = (uintptr_t)&types;
    attr.btf_size = types.header.hdr_len + types.header.str_off + types.header.str_len;
    return bpf(BPF_BTF_LOAD, &attr);
}

static int load_with_types(int types, const struct bpf_insn *program, int length) {
    struct bpf_func_info function = {0, 4};
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT};
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = length;
    attr.license = (uintptr_t) "GPL";
    attr.log_buf = (uintptr_t)verifier_log;
    attr.log_size = sizeof verifier_log;
    attr.log_level = 1;
    attr.prog_btf_fd = types;
    attr.func_info_rec_size = sizeof function;
    attr.func_info = (uintptr_t)&function;
    attr.func_info_cnt = 1;
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0 && getenv("LOG")) fprintf(stderr, "%s", verifier_log);
    return fd;
}

static void programs(int of_context) {
    int types = own_types(of_context), bare = load(BPF_PROG_TYPE_RAW_TRACEPOINT, PROGRAM(RETURN(5)));
    say("types", types);
    int traced = load_with_types(types, PROGRAM(COUNT_IN(COUNT), RETURN(5)));
    say("a program with types", traced);
    say("of one without types", load_at(BPF_TRACE_FENTRY, 4, bare, PROGRAM(RETURN(0))));
    say("a function that it has not", load_at(BPF_TRACE_FENTRY, 5, traced, PROGRAM(RETURN(0))));
    say("what is none", load_at(BPF_TRACE_FENTRY, 1, traced, PROGRAM(RETURN(0))));
    say("its tracepoint", load_at(BPF_TRACE_RAW_TP, 4, traced, PROGRAM(RETURN(0))));
    say("behind it all", load_at(BPF_TRACE_FEXIT, 4, traced,
                                 PROGRAM(LOAD(BPF_DW, 6, 1, of_context ? 16 : 48), RETURN(0))));
    int before = load_at(BPF_TRACE_FENTRY, 4, traced, PROGRAM(COUNT_IN(INNER), RETURN(0)));
    int after = load_at(BPF_TRACE_FEXIT, 4, traced,
                        PROGRAM(LOAD(BPF_W, 6, 1, of_context ? 8 : 40), ADD_R6(RESULT), RETURN(0)));
    say("fentry", before);
    say("fexit", after);
    int links[] = {attach(before, 0), link_program(after, BPF_TRACE_FEXIT, 0)};
    say("linked before", links[0]);
    say("linked after", links[1]);
    unsigned result = 0;
    for (int i = 0; i < 3; i++) say("run", run(traced, 0, 0, &result));
    printf("it returned %u; run %ld, before it %ld, after it %ld\n", result, taken(COUNT), taken(INNER), taken(RESULT));
    close(links[0]);
    close(links[1]);
    run(traced, 0, 0, &result);
    printf("without links: run %ld, before it %ld, after it %ld\n", taken(COUNT), taken(INNER), taken(RESULT));
}

// Whose types are the kernel's: neither a program nor a map has those. A program that says nothing of types has none.
static void types_of_the_kernel(void) {
    union bpf_attr attr = {.btf_id = 1};
    int kernels = bpf(BPF_BTF_GET_FD_BY_ID, &attr);
    say("the kernel's types", kernels);
    say("a program's", load_with_types(kernels, PROGRAM(RETURN(0))));
    attr = (union bpf_attr){.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    attr.btf_fd = kernels;
    attr.btf_key_type_id = attr.btf_value_type_id = 1;
    say("a map's", bpf(BPF_MAP_CREATE, &attr));
    for (int types = 0; types < 3; types++) {
        attr = (union bpf_attr){.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT};
        attr.insns = (uintptr_t)(struct bpf_insn[]){RETURN(0)};
        attr.insn_cnt = 2;
        attr.license = (uintptr_t) "GPL";
        attr.prog_btf_fd = (int[]){kernels, own_types(0), 1000}[types];
        int program = bpf(BPF_PROG_LOAD, &attr);
        say("a program's without functions", program);
        struct bpf_prog_info info = {0};
        attr = (union bpf_attr){0};
        attr.info.bpf_fd = program;
        attr.info.info_len = sizeof info;
        attr.info.info = (uintptr_t)&info;
        bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
        printf("it has some: %d\n", info.btf_id != 0);
    }
    say("of no descriptor", load_with_types(1000, PROGRAM(RETURN(0))));
    say("of another's", load_with_types(counters, PROGRAM(RETURN(0))));
}

// As perf stat --bpf-counters: a leader reads the CPU's counter at each switch, who follows it adds what a task had
static void counters_of_a_task(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof attr, .disabled = 1, .exclude_kernel = 1};
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    int events = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0), zero = 0, go[2];
    int before = new_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0), since = new_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0);
    pipe(go);
    int child = fork();
    if (!child) {
        char byte;
        read(go[0], &byte, 1);
        for (int i = 0; i < 20; i++) {
            for (volatile int turn = 0; turn < 10000 * i; turn++) continue;
            usleep(1000);
        }
        _exit(0);
    }
    int of_cpu = syscall(__NR_perf_event_open, &attr, -1, 0, -1, 0);
    int of_task = syscall(__NR_perf_event_open, &attr, child, -1, -1, 0);
    element(BPF_MAP_UPDATE_ELEM, events, &zero, &of_cpu, 0);
    int leader = load_with_types(own_types(0), PROGRAM(
        MAP(1, events), WIDE(2, -1, 0), MOVX(3, 10), ALU(BPF_ADD, 3, -24), MOV(4, 24),
        CALL(BPF_FUNC_perf_event_read_value), LOAD(BPF_DW, 6, 10, -24), STORE(BPF_W, 10, -28, 0),
        MOVX(2, 10), ALU(BPF_ADD, 2, -28), MAP(1, before), CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 11),
        LOAD(BPF_DW, 7, 0, 0), STOREX(BPF_DW, 0, 6, 0), ALUX(BPF_SUB, 6, 7),
        MOVX(2, 10), ALU(BPF_ADD, 2, -28), MAP(1, since), CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 2),
        STOREX(BPF_DW, 0, 6, 0), MOV(8, 0), RETURN(0)));
    int follower = load_at(BPF_TRACE_FEXIT, 4, leader, PROGRAM(
        CALL(BPF_FUNC_get_current_pid_tgid), ALU(BPF_RSH, 0, 32), JUMP(BPF_JEQ, 0, child, 2), RETURN(0),
        STORE(BPF_W, 10, -28, 0), MOVX(2, 10), ALU(BPF_ADD, 2, -28), MAP(1, since),
        CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JNE, 0, 0, 2), RETURN(0), LOAD(BPF_DW, 6, 0, 0), ADD_R6(RESULT),
        RETURN(0)));
    union bpf_attr at = {0};
    at.raw_tracepoint.name = (uintptr_t) "sched_switch";
    at.raw_tracepoint.prog_fd = leader;
    say("the leader", bpf(BPF_RAW_TRACEPOINT_OPEN, &at));
    say("who follows", attach(follower, 0));
    ioctl(of_cpu, PERF_EVENT_IOC_ENABLE, 0);
    ioctl(of_task, PERF_EVENT_IOC_ENABLE, 0);
    unsigned result;
    say("the first reading", run(leader, 0, 0, &result));
    taken(RESULT);
    write(go[1], "", 1);
    waitpid(child, 0, 0);
    long wanted = -1;
    read(of_task, &wanted, sizeof wanted);
    long counted = taken(RESULT);
    if (getenv("LOG")) fprintf(stderr, "%ld %ld\n", counted, wanted);
    printf("they count the task's instructions: %d, as many as its own event: %d\n", wanted > 2 * 10000 * 190,
           counted == wanted);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    counters = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, COUNTERS, 0);
    read_types();
    opens();
    arguments();
    returns();
    order();
    verdicts();
    tracepoints();
    programs(1);
    programs(0);
    types_of_the_kernel();
    counters_of_a_task();
}
