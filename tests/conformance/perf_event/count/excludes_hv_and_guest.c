// exclude_hv and exclude_guest leave out what there is none of.
#include "../behaviour.h"

BEHAVIOUR(excludes_hv_and_guest, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.exclude_hv = attr.exclude_guest = 1;
    int event = open_event(attr);
    enable(event);
    million();
    disable(event);
    COMPARE(count_of(event), >=, 1000000);
}
