// PERF_FLAG_FD_NO_GROUP: the event leads itself, whatever group_fd is.
#include "../behaviour.h"

BEHAVIOUR(no_group_flag, NOTHING) {
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_GROUP;
    int other = open_event(attr), event = try_open(attr, 0, -1, other, PERF_FLAG_FD_NO_GROUP);
    uint64_t values[8];
    EQUAL(read(event, values, sizeof values), 16);
    EQUAL(values[0], 1);
    attr.pinned = 1;
    SUCCEEDS(try_open(attr, 0, -1, other, PERF_FLAG_FD_NO_GROUP));
}
