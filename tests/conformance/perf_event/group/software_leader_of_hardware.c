// A software event may lead hardware events, and the other way round.
#include "../behaviour.h"

BEHAVIOUR(software_leader_of_hardware, PMU) {
    Attr attr = INSTRUCTIONS;
    attr.disabled = 0;
    int leader = open_event(DUMMY), sibling = open_sibling(attr, leader);
    enable(leader);
    million();
    disable(leader);
    COMPARE(count_of(sibling), >=, 1000000);
    leader = open_event(INSTRUCTIONS);
    attr = SOFTWARE(TASK_CLOCK);
    attr.disabled = 0;
    sibling = open_sibling(attr, leader);
    enable(leader);
    million();
    disable(leader);
    COMPARE(count_of(leader), >=, 1000000);
    COMPARE(count_of(sibling), >, 0);
}
