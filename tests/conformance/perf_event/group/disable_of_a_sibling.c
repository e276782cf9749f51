// DISABLE without the flag is for one alone.
#include "../behaviour.h"

BEHAVIOUR(disable_of_a_sibling, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int leader = open_event(attr), sibling = open_sibling(attr, leader);
    disable(sibling);
    uint64_t led = count_of(leader), with = count_of(sibling);
    fault(10);
    COMPARE(count_of(leader), >=, led + 10);
    EQUAL(count_of(sibling), with);
}
