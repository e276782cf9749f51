// A reading has the words that read_format asks for, whichever they are.
#include "../behaviour.h"

BEHAVIOUR(every_format, NOTHING) {
    for (unsigned format = 0; format < 32; format++) {
        Attr attr = DUMMY;
        attr.read_format = format;
        int leader = open_event(attr);
        open_sibling(attr, leader);
        int events = format & PERF_FORMAT_GROUP ? 2 : 1, times = !!(format & 1) + !!(format & 2);
        int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
        int words = !!(format & PERF_FORMAT_GROUP) + times + events * each;
        uint64_t values[32];
        EQUAL(read(leader, values, sizeof values), 8 * words);
        close(leader);
    }
}
