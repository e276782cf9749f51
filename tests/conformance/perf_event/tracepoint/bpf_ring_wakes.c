// A record that a BPF program gives to a ring buffer wakes who waits there, in an interrupt of its own: it is counted,
// and within the tracepoint for which the program runs.
#include "wakings.h"

#include <linux/bpf.h>
#include <sys/epoll.h>

static int epoll_sleeper(int descriptor) {
    int pid = fork();
    if (pid == 0) {
        struct epoll_event event = {.events = EPOLLIN};
        int waiting = epoll_create1(0);
        if (epoll_ctl(waiting, EPOLL_CTL_ADD, descriptor, &event)) _exit(4);
        _exit(epoll_wait(waiting, &event, 1, -1) == 1 ? 0 : 3);
    }
    until_asleep(pid);
    return pid;
}

static int wakings_of(int pid) {
    char filter[40];
    snprintf(filter, sizeof filter, "pid == %d", pid);
    return tracepoint_event("sched/sched_waking", filter);
}

BEHAVIOUR(bpf_ring_wakes, ROOT | TRACEFS) {
    union bpf_attr create = {.map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = 4096};
    int ring = syscall(SYS_bpf, BPF_MAP_CREATE, &create, sizeof create);
    if (ring < 0 && errno == EPERM) SKIP("no map may be made");
    SUCCEEDS(ring);
    struct bpf_insn program[] = {
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = ring},
        {0},
        {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .off = -8, .imm = 1},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ringbuf_output},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_TRACEPOINT,
                           .insn_cnt = sizeof program / sizeof *program,
                           .insns = (uintptr_t)program,
                           .license = (uintptr_t)""};
    int loaded = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
    SUCCEEDS(loaded);
    Attr attr = attr_of(PERF_TYPE_TRACEPOINT, number_in("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id"));
    attr.exclude_kernel = 0;
    int calls = open_event(attr);
    SUCCEEDS(ioctl(calls, PERF_EVENT_IOC_SET_BPF, loaded));
    int polling = sleeper(ring), in_epoll = epoll_sleeper(ring);
    int wakings = wakings_of(polling), wakings_in_epoll = wakings_of(in_epoll);
    enable(wakings);
    enable(wakings_in_epoll);
    enable(calls);
    getppid();
    disable(calls);
    disable(wakings_in_epoll);
    disable(wakings);
    EQUAL(wait_for(polling), 0);
    EQUAL(wait_for(in_epoll), 0);
    EQUAL(count_of(calls), 1);
    EQUAL(count_of(wakings), 1);
    EQUAL(count_of(wakings_in_epoll), 1);
}
