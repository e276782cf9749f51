// A task that has ended, and that nobody has waited for: ESRCH.
#include "../behaviour.h"

BEHAVIOUR(ended_task, NOTHING) {
    int pid = fork();
    if (pid == 0) _exit(0);
    siginfo_t info;
    SUCCEEDS(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    FAILS(try_open(DUMMY, pid, -1, -1, 0), ESRCH);
}
