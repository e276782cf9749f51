// ... but siblings that are off need no counter: there may be as many as there will.
#include "../behaviour.h"

BEHAVIOUR(too_big_but_off, PMU) {
    int leader = open_event(INSTRUCTIONS);
    for (int i = 0; i < 99; i++) open_sibling(INSTRUCTIONS, leader);
}
