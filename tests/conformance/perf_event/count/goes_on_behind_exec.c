// An event goes on counting in the program that execve starts.
#include "../behaviour.h"

BEHAVIOUR(goes_on_behind_exec, PMU) {
    if (behaviour_again) {
        million();
        _exit(0);
    }
    int ends[2];
    SUCCEEDS(pipe(ends));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(ends[0], &byte, 1), 1);
        exec_again("million");
    }
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    int event = open_of(attr, pid, -1, -1);
    EQUAL(write(ends[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    COMPARE(count_of(event), >=, 1000000);
}
