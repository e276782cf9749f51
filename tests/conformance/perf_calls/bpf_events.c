// Programs that are run for events: overflows, tracepoints, raw tracepoints, uprobes, links; what their helpers tell.
// Counts follow from the program.

#include "bpf.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>

#define TRACING "/sys/kernel/tracing/"
#define FUNCTION __attribute__((noinline, noclone, aligned(16)))
#define LOAD_OF(type, ...) load(type, (struct bpf_insn[]){__VA_ARGS__}, LENGTH(((struct bpf_insn[]){__VA_ARGS__})))

enum { OVERFLOWS, CALLS, RAW_CALLS, PROBES, ARGUMENT, PID, COOKIE, STACK, RESULT, COUNTED, COUNTERS };

static int counters, ring, stacks, records;

// Adds R6 to a counter; uses R0 to R5
#define ADD_R6(counter)                                                                                     \
    STORE(BPF_W, 10, -4, counter), MOVX(2, 10), ALU(BPF_ADD, 2, -4), MAP(1, counters),                      \
        CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 1), INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 6, 0, BPF_ADD)
#define COUNT(counter) MOV(6, 1), ADD_R6(counter)
#define RETURN(value) MOV(0, value), EXIT

static long counted(int counter) {
    long value = -1;
    element(BPF_MAP_LOOKUP_ELEM, counters, &counter, &value, 0);
    return value;
}

static long taken(int counter) {
    long value = counted(counter), zero = 0;
    element(BPF_MAP_UPDATE_ELEM, counters, &counter, &zero, 0);
    return value;
}

static int open_event(int type, uint64_t config, uint64_t period, int cpu, int pid) {
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config, .sample_period = period};
    attr.sample_type = PERF_SAMPLE_RAW;
    attr.wakeup_events = 1;
    return syscall(__NR_perf_event_open, &attr, pid, cpu, -1, 0);
}

static int tracepoint(const char *name) {
    char path[200], text[20] = {0};
    snprintf(path, sizeof path, TRACING "events/%s/id", name);
    int fd = open(path, O_RDONLY);
    read(fd, text, sizeof text - 1);
    close(fd);
    return open_event(PERF_TYPE_TRACEPOINT, atoi(text), 1, -1, 0);
}

static void getppid_times(int times) {
    for (int i = 0; i < times; i++) syscall(__NR_getppid);
}

static long value_of(int event) {
    long value = -1;
    read(event, &value, sizeof value);
    return value;
}

static void set(const char *what, int event, int program) {
    say(what, ioctl(event, PERF_EVENT_IOC_SET_BPF, program));
}

static void overflows(void) {
    int program = LOAD_OF(BPF_PROG_TYPE_PERF_EVENT, COUNT(OVERFLOWS), RETURN(0));
    int tracing = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, RETURN(0));
    int event = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 100000, -1, 0);
    set("a tracepoint's program", event, tracing);
    set("one for overflows", event, program);
    set("another", event, program);
    set("nothing", event, 1000);
    set("an event", event, event);
    while (!counted(OVERFLOWS)) getppid_times(100);
    printf("it was run\n");
    close(event);
    taken(OVERFLOWS);
    getppid_times(100);
    printf("after its end: %ld\n", counted(OVERFLOWS));
}

static void tracepoints(void) {
    int zero = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, COUNT(CALLS), RETURN(0));
    int one = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, COUNT(CALLS), RETURN(1));
    int beyond = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, LOAD(BPF_DW, 0, 1, 200), RETURN(0));
    int overflow = LOAD_OF(BPF_PROG_TYPE_PERF_EVENT, RETURN(0));
    int event = tracepoint("syscalls/sys_enter_getppid");
    set("a program for overflows", event, overflow);
    set("a program that reads too much", event, beyond);
    set("a program that says 0", event, zero);
    set("another", event, one);
    getppid_times(5);
    printf("run %ld, counted %ld\n", taken(CALLS), value_of(event));
    close(event);
    event = tracepoint("syscalls/sys_enter_getppid");
    int other = tracepoint("syscalls/sys_enter_getppid");
    set("a program that says 1", event, one);
    getppid_times(5);
    printf("run %ld, counted %ld\n", taken(CALLS), value_of(event));
    set("a second one", other, zero);
    getppid_times(5);
    printf("run %ld, counted %ld\n", taken(CALLS), value_of(event));
    struct perf_event_query_bpf *query = calloc(1, sizeof *query + 4 * 10);
    query->ids_len = 10;
    say("query", ioctl(event, PERF_EVENT_IOC_QUERY_BPF, query));
    printf("%u programs\n", query->prog_cnt);
    query->ids_len = 1;
    say("query with room for one", ioctl(event, PERF_EVENT_IOC_QUERY_BPF, query));
    query->ids_len = 100;
    say("query with too much room", ioctl(event, PERF_EVENT_IOC_QUERY_BPF, query));
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    getppid_times(5);
    printf("disabled, run %ld\n", taken(CALLS));
    close(other);
    close(event);
    getppid_times(5);
    printf("closed, run %ld\n", taken(CALLS));
    event = tracepoint("syscalls/sys_exit_getpgid");
    int program = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, LOAD(BPF_DW, 6, 1, 16), ADD_R6(RESULT), RETURN(1));
    set("of a result", event, program);
    syscall(__NR_getpgid, 1000000);
    printf("it was %ld\n", taken(RESULT));
    close(event);
}

static void raw_tracepoints(void) {
    int program = LOAD_OF(BPF_PROG_TYPE_RAW_TRACEPOINT, LOAD(BPF_DW, 7, 1, 8), RETURN(0));
    int counting = LOAD_OF(BPF_PROG_TYPE_RAW_TRACEPOINT, LOAD(BPF_DW, 7, 1, 8), JUMP(BPF_JNE, 7, __NR_getppid, 10),
                           COUNT(RAW_CALLS), RETURN(0), RETURN(0));
    union bpf_attr attr = {0};
    attr.raw_tracepoint.name = (uintptr_t) "no_such_tracepoint";
    attr.raw_tracepoint.prog_fd = counting;
    say("no such tracepoint", bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
    attr.raw_tracepoint.name = (uintptr_t) "sys_enter";
    attr.raw_tracepoint.prog_fd = 1000;
    say("no program", bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
    attr.raw_tracepoint.prog_fd = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, RETURN(0));
    say("a tracepoint's program", bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
    attr.raw_tracepoint.prog_fd = counting;
    int link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
    getppid_times(7);
    close(link);
    getppid_times(7);
    printf("raw: %ld\n", taken(RAW_CALLS));
    close(program);
}

static FUNCTION int probed(int argument) {
    asm volatile("" : "+r"(argument));
    return argument + 1;
}

#ifdef __aarch64__
enum { FIRST_ARGUMENT = 0, RETURNED = 0 };
#else
enum { FIRST_ARGUMENT = 112, RETURNED = 80 };
#endif

extern char __executable_start[];

static int uprobe(char kind) {
    char path[200] = {0}, line[300], name[60];
    readlink("/proc/self/exe", path, sizeof path - 1);
    snprintf(line, sizeof line, "%c:bpf_test/%c%d %s:%#lx\n", kind, kind, getpid(), path,
             (long)((char *)probed - __executable_start));
    int fd = open(TRACING "uprobe_events", O_WRONLY | O_APPEND);
    if (write(fd, line, strlen(line)) < 0) printf("uprobe_events: errno %d\n", errno);
    close(fd);
    snprintf(name, sizeof name, "bpf_test/%c%d", kind, getpid());
    return tracepoint(name);
}

static void remove_uprobe(char kind) {
    char line[60];
    int fd = open(TRACING "uprobe_events", O_WRONLY | O_APPEND);
    snprintf(line, sizeof line, "-:bpf_test/%c%d\n", kind, getpid());
    write(fd, line, strlen(line));
    close(fd);
}

static void uprobes(void) {
    int event = uprobe('p');
    int program = LOAD_OF(BPF_PROG_TYPE_KPROBE, LOAD(BPF_DW, 6, 1, FIRST_ARGUMENT), ADD_R6(ARGUMENT), COUNT(PROBES), RETURN(0));
    set("a tracepoint's program", event, LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, RETURN(0)));
    set("a probe's", event, program);
    for (int i = 1; i <= 4; i++) probed(i);
    printf("probed %ld times, arguments %ld, counted %ld\n", taken(PROBES), taken(ARGUMENT), value_of(event));
    close(event);
    remove_uprobe('p');
    event = uprobe('r');
    program = LOAD_OF(BPF_PROG_TYPE_KPROBE, LOAD(BPF_DW, 6, 1, RETURNED), ADD_R6(ARGUMENT), COUNT(PROBES), RETURN(1));
    set("a return's", event, program);
    for (int i = 1; i <= 4; i++) probed(i);
    printf("returned %ld times, results %ld, counted %ld\n", taken(PROBES), taken(ARGUMENT), value_of(event));
    close(event);
    remove_uprobe('r');
}

static void links(void) {
    int event = tracepoint("syscalls/sys_enter_getppid");
    int program = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, CALL(BPF_FUNC_get_attach_cookie), MOVX(6, 0), ADD_R6(COOKIE), RETURN(1));
    union bpf_attr attr = {0};
    attr.link_create.prog_fd = program;
    attr.link_create.target_fd = event;
    attr.link_create.attach_type = BPF_PERF_EVENT;
    attr.link_create.flags = 1;
    say("flags", bpf(BPF_LINK_CREATE, &attr));
    attr.link_create.flags = 0;
    attr.link_create.target_fd = program;
    say("to a program", bpf(BPF_LINK_CREATE, &attr));
    attr.link_create.target_fd = event;
    attr.link_create.perf_event.bpf_cookie = 1000;
    int link = bpf(BPF_LINK_CREATE, &attr);
    say("link", link);
    say("another", bpf(BPF_LINK_CREATE, &attr));
    getppid_times(3);
    printf("cookies: %ld\n", taken(COOKIE));
    union bpf_attr detach = {0};
    detach.link_detach.link_fd = link;
    say("detach", bpf(BPF_LINK_DETACH, &detach));
    close(link);
    getppid_times(3);
    printf("closed: %ld, counted %ld\n", taken(COOKIE), value_of(event));
    close(event);
}

static void outputs(void) {
    int output = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, 1, 0, -1), key = 0;
    char *page = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, output, 0);
    say("an event in its place", element(BPF_MAP_UPDATE_ELEM, records, &key, &output, 0));
    say("a descriptor that is none", element(BPF_MAP_UPDATE_ELEM, records, &key, &(int){1000}, 0));
    say("one of something else", element(BPF_MAP_UPDATE_ELEM, records, &key, &ring, 0));
    key = 64;
    say("beyond the end", element(BPF_MAP_UPDATE_ELEM, records, &key, &output, 0));
    int event = tracepoint("syscalls/sys_enter_getppid");
    int program = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, STORE(BPF_DW, 10, -16, 0x1111), STORE(BPF_W, 10, -8, 0x2222), MAP(2, records),
                          WIDE(3, -1, 0), MOVX(4, 10), ALU(BPF_ADD, 4, -16), MOV(5, 12), CALL(BPF_FUNC_perf_event_output),
                          MOVX(6, 0), ADD_R6(RESULT), RETURN(1));
    set("output", event, program);
    getppid_times(2);
    struct pollfd ready = {output, POLLIN};
    int polled = poll(&ready, 1, 0);
    struct perf_event_mmap_page *head = (void *)page;
    printf("results %ld, %llu bytes, poll %d %x\n", taken(RESULT), (unsigned long long)head->data_head, polled, ready.revents);
    unsigned *words = (unsigned *)(page + 4096);
    for (unsigned i = 0; i < head->data_head / 4; i++) printf("%x ", i % 6 == 1 ? words[i] >> 16 : words[i]);  // size alone
    printf("\n");
    close(event);
    close(output);
}

static void rings(void) {
    int event = tracepoint("syscalls/sys_enter_getppid");
    int program = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, MAP(1, ring), MOV(2, 24), MOV(3, 0), CALL(BPF_FUNC_ringbuf_reserve),
                          JUMP(BPF_JEQ, 0, 0, 6), STORE(BPF_DW, 0, 0, 0x77), STORE(BPF_DW, 0, 16, 0x78), MOVX(1, 0), MOV(2, 0),
                          CALL(BPF_FUNC_ringbuf_submit), GOTO(0), COUNT(CALLS), RETURN(1));
    volatile unsigned long *consumed = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    volatile unsigned long *produced = mmap(0, 3 * 4096, PROT_READ, MAP_SHARED, ring, 4096);
    say("the producer's page to be written", mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 4096) == MAP_FAILED ? -1 : 0);
    say("more than there is", mmap(0, 4 * 4096, PROT_READ, MAP_SHARED, ring, 4096) == MAP_FAILED ? -1 : 0);
    set("ring", event, program);
    struct pollfd ready = {ring, POLLIN};
    printf("empty: poll %d\n", poll(&ready, 1, 0));
    getppid_times(3);
    int polled = poll(&ready, 1, 0);
    printf("poll %d %x, %lu bytes\n", polled, ready.revents, produced[0]);
    for (int i = 0; i < 12; i++) printf("%lx ", produced[512 + i]);
    printf("\n");
    getppid_times(200);
    printf("full: %lu bytes\n", produced[0]);
    *consumed = 4096;
    getppid_times(3);
    printf("read: %lu bytes, %lx %lx, again %lx %lx\n", produced[0], produced[512], produced[513], produced[1024], produced[1025]);
    *consumed = produced[0];
    printf("poll %d, %ld calls\n", poll(&ready, 1, 0), taken(CALLS));
    close(event);
}

static FUNCTION void inner(void) {
    syscall(__NR_getppid);
    asm volatile("");
}

static void told(void) {
    int event = tracepoint("syscalls/sys_enter_getppid");
    int program = LOAD_OF(BPF_PROG_TYPE_TRACEPOINT, MOVX(7, 1), CALL(BPF_FUNC_get_current_pid_tgid), ALU(BPF_RSH, 0, 32), MOVX(6, 0),
                          ADD_R6(PID), MOVX(1, 7), MAP(2, stacks), MOV(3, BPF_F_USER_STACK), CALL(BPF_FUNC_get_stackid),
                          JUMP(BPF_JSLT, 0, 0, 9), COUNT(STACK), RETURN(1));
    set("of whom", event, program);
    inner();
    printf("pid is right: %d, stacks %ld\n", taken(PID) == getpid(), taken(STACK));
    close(event);
    struct { char comm[16]; } name;
    int named = LOAD_OF(BPF_PROG_TYPE_RAW_TRACEPOINT, MOVX(1, 10), ALU(BPF_ADD, 1, -16), MOV(2, 16),
                        CALL(BPF_FUNC_get_current_comm), LOAD(BPF_W, 0, 10, -16), EXIT);
    unsigned result = 0;
    int ran = run(named, 0, 0, &result);
    memcpy(&name, &result, 4);
    printf("comm: %d %.4s\n", ran, name.comm);
    int users = LOAD_OF(BPF_PROG_TYPE_RAW_TRACEPOINT, LOAD(BPF_DW, 3, 1, 0), MOVX(1, 10), ALU(BPF_ADD, 1, -16), MOV(2, 16),
                        CALL(BPF_FUNC_probe_read_user_str), MOVX(6, 0), LOAD(BPF_B, 0, 10, -14), ALU(BPF_LSH, 0, 8), ALUX(BPF_OR, 0, 6), EXIT);
    uint64_t context = (uintptr_t) "a string of the user's";
    run(users, &context, sizeof context, &result);
    printf("user's string: %x\n", result);
    context = (uintptr_t) "short";
    run(users, &context, sizeof context, &result);
    printf("user's short string: %x\n", result);
    context = 8;
    run(users, &context, sizeof context, &result);
    printf("no string: %d\n", (int)result);
}

static void information(void) {
    struct bpf_insn code[] = {MAP(1, counters), RETURN(3)};
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT};
    attr.insns = (uintptr_t)code;
    attr.insn_cnt = LENGTH(code);
    attr.license = (uintptr_t) "GPL";
    strcpy(attr.prog_name, "named");
    int program = bpf(BPF_PROG_LOAD, &attr);
    unsigned ids[4] = {0};
    struct bpf_prog_info info = {.nr_map_ids = 4, .map_ids = (uintptr_t)ids};
    union bpf_attr ask = {0};
    ask.info.bpf_fd = program;
    ask.info.info = (uintptr_t)&info;
    ask.info.info_len = sizeof info;
    say("program", bpf(BPF_OBJ_GET_INFO_BY_FD, &ask));
    printf("type %u, %s, %u maps, GPL %u, tag ", info.type, info.name, info.nr_map_ids, info.gpl_compatible);
    for (int i = 0; i < 8; i++) printf("%02x", info.tag[i]);
    printf("\n");
    struct bpf_map_info map = {0};
    ask.info.bpf_fd = counters;
    ask.info.info = (uintptr_t)&map;
    ask.info.info_len = sizeof map;
    say("map", bpf(BPF_OBJ_GET_INFO_BY_FD, &ask));
    printf("type %u, key %u, value %u, %u entries, the program's: %d\n", map.type, map.key_size, map.value_size, map.max_entries,
           map.id == ids[0]);
    union bpf_attr id = {.map_id = map.id};
    say("map by its number", bpf(BPF_MAP_GET_FD_BY_ID, &id));
    id.map_id = 1000000;
    say("no such number", bpf(BPF_MAP_GET_FD_BY_ID, &id));
    ask.info.bpf_fd = 0;
    say("of something else", bpf(BPF_OBJ_GET_INFO_BY_FD, &ask));
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    mount("proc", "/proc", "proc", 0, 0);
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
    counters = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, COUNTERS, 0);
    ring = new_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
    stacks = new_map(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 20, 16, 0);
    records = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 64, 0);
    overflows();
    tracepoints();
    raw_tracepoints();
    uprobes();
    links();
    outputs();
    rings();
    told();
    information();
}
