// enable_on_exec of a leader lets its siblings count that are not disabled themselves.
#include "../behaviour.h"

BEHAVIOUR(enable_on_exec_in_a_group, NOTHING) {
    if (behaviour_again) {
        fault(20);
        _exit(0);
    }
    static int ends[2];
    SUCCEEDS(pipe(ends));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(ends[0], &byte, 1), 1);
        exec_again("fault");
    }
    Attr attr = DUMMY;
    attr.enable_on_exec = 1;
    int leader = open_of(attr, pid, -1, -1);
    attr = SOFTWARE(PAGE_FAULTS_MIN);
    int off = open_of(attr, pid, -1, leader);
    attr.disabled = 0;
    int on = open_of(attr, pid, -1, leader);
    EQUAL(write(ends[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    COMPARE(count_of(on), >=, 20);
    EQUAL(count_of(off), 0);
}
