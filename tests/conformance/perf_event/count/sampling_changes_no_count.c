// An event that samples counts what one does that does not.
#include "../behaviour.h"

BEHAVIOUR(sampling_changes_no_count, PMU) {
    Attr attr = INSTRUCTIONS;
    int plain = open_event(attr);
    attr.sample_period = 10007;
    attr.disabled = 0;
    int sampling = open_sibling(attr, plain);
    enable(plain);
    million();
    disable(plain);
    EQUAL(count_of(sampling), count_of(plain));
}
