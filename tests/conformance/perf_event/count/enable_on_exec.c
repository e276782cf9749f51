// enable_on_exec: it begins to count with execve, and not before.
#include "../behaviour.h"

BEHAVIOUR(enable_on_exec, PMU) {
    if (behaviour_again) {
        million();
        _exit(0);
    }
    static int ends[2];
    SUCCEEDS(pipe(ends));
    int pid = fork();
    if (pid == 0) {
        char byte;
        EQUAL(read(ends[0], &byte, 1), 1);
        for (int i = 0; i < 20; i++) million();
        exec_again("million");
    }
    Attr attr = INSTRUCTIONS;
    attr.enable_on_exec = 1;
    int event = open_of(attr, pid, -1, -1);
    EQUAL(write(ends[1], "g", 1), 1);
    EQUAL(wait_for(pid), 0);
    COMPARE(count_of(event), >=, 1000000);
    COMPARE(count_of(event), <, 10000000);
}
