// exclude_idle may be asked of any software event.
#include "../behaviour.h"

BEHAVIOUR(excludes_idle_of_software, NOTHING) {
    Attr attr = SOFTWARE(CPU_CLOCK);
    attr.exclude_idle = 1;
    EQUAL(open_error(attr), 0);
}
