// Siblings count while their leader is enabled, each if it is enabled itself.
#include "../behaviour.h"

BEHAVIOUR(leader_switches_the_group, NOTHING) {
    int leader = open_event(DUMMY);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    int off = open_sibling(attr, leader);
    attr.disabled = 0;
    int on = open_sibling(attr, leader);
    char* at = fresh(40);
    touch(at, 10);
    EQUAL(count_of(on), 0);
    enable(leader);
    touch(at + 10 * page_size(), 10);
    disable(leader);
    touch(at + 20 * page_size(), 10);
    EQUAL(count_of(on), 10);
    EQUAL(count_of(off), 0);
    enable(leader);
    enable(off);
    touch(at + 30 * page_size(), 10);
    EQUAL(count_of(on), 20);
    EQUAL(count_of(off), 10);
}
