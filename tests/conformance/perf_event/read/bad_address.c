// Memory that cannot be written: EFAULT.
#include "../behaviour.h"

BEHAVIOUR(bad_address, NOTHING) {
    int event = open_event(DUMMY);
    FAILS(syscall(SYS_read, event, 16, 8), EFAULT);
}
