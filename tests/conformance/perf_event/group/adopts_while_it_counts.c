// An event that joins a group whose leader counts begins at once.
#include "../behaviour.h"

BEHAVIOUR(adopts_while_it_counts, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.disabled = 0;
    int leader = open_event(attr);
    fault(5);
    int sibling = open_sibling(attr, leader);
    uint64_t led = count_of(leader), with = count_of(sibling);
    char* at = fresh(7);
    touch(at, 7);
    EQUAL(count_of(leader) - led, 7);
    EQUAL(count_of(sibling) - with, 7);
}
