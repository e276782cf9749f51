// PAGE_FAULTS_MIN and PAGE_FAULTS: one for each fresh page that is touched. PAGE_FAULTS_MAJ: none.
#include "../behaviour.h"

BEHAVIOUR(page_faults, NOTHING) {
    int all = open_event(SOFTWARE(PAGE_FAULTS)), minor = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    int major = open_event(SOFTWARE(PAGE_FAULTS_MAJ));
    char* at = fresh(25);
    enable(all), enable(minor), enable(major);
    touch(at, 25);
    touch(at, 25);
    disable(all), disable(minor), disable(major);
    EQUAL(count_of(all), 25);
    EQUAL(count_of(minor), 25);
    EQUAL(count_of(major), 0);
}
