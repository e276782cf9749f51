// precise_ip asks nothing of a software event.
#include "../behaviour.h"

BEHAVIOUR(precise_software, NOTHING) {
    for (int level = 0; level < 4; level++) {
        Attr attr = DUMMY;
        attr.precise_ip = level;
        attr.sample_period = 1;
        EQUAL(open_error(attr), 0);
    }
}
