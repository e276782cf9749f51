// An ioctl that events have not: ENOTTY.
#include "../behaviour.h"

BEHAVIOUR(unknown, NOTHING) {
    int event = open_event(DUMMY), value;
    FAILS(ioctl(event, 0x2477, 0), ENOTTY);
    FAILS(ioctl(event, 0x5401, &value), ENOTTY);  // TCGETS
}
