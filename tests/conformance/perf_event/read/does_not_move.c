// A second reading is as long as the first: there is no position.
#include "../behaviour.h"

BEHAVIOUR(does_not_move, NOTHING) {
    int event = open_event(DUMMY);
    uint64_t value;
    for (int i = 0; i < 3; i++) EQUAL(read(event, &value, sizeof value), 8);
    FAILS(lseek(event, 0, SEEK_SET), ESPIPE);
    FAILS(pread(event, &value, sizeof value, 0), ESPIPE);
}
