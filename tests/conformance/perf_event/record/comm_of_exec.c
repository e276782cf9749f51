// ... and by execve, with PERF_RECORD_MISC_COMM_EXEC.
#include "../behaviour.h"

BEHAVIOUR(comm_of_exec, NOTHING) {
    if (behaviour_again) _exit(0);
    static int gate[2];
    SUCCEEDS(pipe(gate));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(gate[0], &byte, 1), 1);
        exec_again("end");
    }
    Attr attr = DUMMY;
    attr.comm = attr.comm_exec = 1;
    attr.disabled = 0;
    int event = open_of(attr, pid, -1, -1);
    struct ring* ring = ring_of(event, 1);
    EQUAL(write(gate[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    Header* header = next_of(ring, PERF_RECORD_COMM);
    CHECK(header);
    EQUAL(header->misc & PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_COMM_EXEC);
    EQUAL(*(uint32_t*)(header + 1), pid);
    EQUAL(strncmp((char*)(header + 1) + 8, "exe", 3), 0);
}
