// readv(2) reads once for each piece.
#include "../behaviour.h"

BEHAVIOUR(by_readv, NOTHING) {
    int event = open_event(DUMMY);
    uint64_t values[2] = {7, 7};
    struct {
        void* at;
        unsigned long length;
    } pieces[2] = {{&values[0], 8}, {&values[1], 8}};
    EQUAL(syscall(SYS_readv, event, pieces, 2), 16);
    EQUAL(values[0], 0);
    EQUAL(values[1], 0);
}
