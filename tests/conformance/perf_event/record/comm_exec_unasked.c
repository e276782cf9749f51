// attr.comm_exec only says that the kernel knows of it: PERF_RECORD_MISC_COMM_EXEC is there without it.
#include "../behaviour.h"

BEHAVIOUR(comm_exec_unasked, NOTHING) {
    if (behaviour_again) _exit(0);
    static int gate[2];
    SUCCEEDS(pipe(gate));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(gate[0], &byte, 1), 1);
        prctl(PR_SET_NAME, "renamed");
        exec_again("end");
    }
    Attr attr = DUMMY;
    attr.comm = 1;
    attr.disabled = 0;
    int event = open_of(attr, pid, -1, -1);
    struct ring* ring = ring_of(event, 1);
    EQUAL(write(gate[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    EQUAL(next_of(ring, PERF_RECORD_COMM)->misc & PERF_RECORD_MISC_COMM_EXEC, 0);
    EQUAL(next_of(ring, PERF_RECORD_COMM)->misc & PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_COMM_EXEC);
}
