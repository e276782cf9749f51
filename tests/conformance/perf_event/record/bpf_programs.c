// attr.bpf_event: a PERF_RECORD_BPF_EVENT when a BPF program is loaded, and one when nobody has it any more.
#include <linux/bpf.h>

#include "../behaviour.h"

struct bpf_record {
    uint16_t type, flags;
    uint32_t id;
    uint8_t tag[8];
};

BEHAVIOUR(bpf_programs, ROOT) {
    Attr attr = DUMMY;
    attr.bpf_event = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    struct bpf_insn program[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 7}, {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr load = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2, .insns = (uintptr_t)program, .license = (uintptr_t)""};
    enable(event);
    int loaded = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
    if (loaded < 0 && errno == EPERM) SKIP("no program may be loaded");
    SUCCEEDS(loaded);
    struct bpf_prog_info info = {0};
    union bpf_attr ask = {
        .info = {.bpf_fd = (uint32_t)loaded, .info_len = sizeof info, .info = (uint64_t)(uintptr_t)&info}};
    SUCCEEDS(syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof ask));
    int again = dup(loaded);
    close(loaded);
    close(again);
    disable(event);
    for (int type = PERF_BPF_EVENT_PROG_LOAD; type <= PERF_BPF_EVENT_PROG_UNLOAD; type++) {
        Header* header = next_record(ring);
        EQUAL(header->type, PERF_RECORD_BPF_EVENT);
        EQUAL(header->size, sizeof *header + sizeof(struct bpf_record));
        struct bpf_record* record = (struct bpf_record*)(header + 1);
        EQUAL(record->type, type);
        EQUAL(record->flags, 0);
        EQUAL(record->id, info.id);
        EQUAL(memcmp(record->tag, info.tag, sizeof info.tag), 0);
    }
    CHECK(!next_record(ring));
}
