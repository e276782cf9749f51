// remove_on_exec: execve ends the event; its count stays.
#include "../behaviour.h"

BEHAVIOUR(remove_on_exec, NOTHING) {
    if (behaviour_again) {
        fault(100);
        _exit(0);
    }
    static int ends[2];
    SUCCEEDS(pipe(ends));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(ends[0], &byte, 1), 1);
        fault(10);
        exec_again("fault");
    }
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.remove_on_exec = 1;
    attr.disabled = 0;
    int event = open_of(attr, pid, -1, -1);
    EQUAL(write(ends[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    COMPARE(count_of(event), >=, 10);
    COMPARE(count_of(event), <, 90);
}
