// exclude_kernel: what the kernel executes does not count.
#include "../behaviour.h"

BEHAVIOUR(excludes_the_kernel, PMU) {
    int user = open_event(INSTRUCTIONS);
    enable(user);
    for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
    disable(user);
    COMPARE(count_of(user), >=, 1000);
    COMPARE(count_of(user), <, 100000);
}
