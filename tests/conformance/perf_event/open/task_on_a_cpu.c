// A task and a CPU: an event of that task where it is on that CPU.
#include "../behaviour.h"

BEHAVIOUR(task_on_a_cpu, NOTHING) {
    SUCCEEDS(try_open(DUMMY, 0, 0, -1, 0));
    SUCCEEDS(try_open(DUMMY, getpid(), 0, -1, 0));
}
