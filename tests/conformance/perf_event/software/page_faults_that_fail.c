// A fault that ends in SIGSEGV is one, and neither minor nor major.
#include <setjmp.h>

#include "../behaviour.h"

static sigjmp_buf behind_the_fault;

static void come_back(int number) { siglongjmp(behind_the_fault, number); }

BEHAVIOUR(page_faults_that_fail, NOTHING) {
    signal(SIGSEGV, come_back);
    int all = open_event(SOFTWARE(PAGE_FAULTS)), minor = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(all), enable(minor);
    uint64_t before = count_of(all), minor_before = count_of(minor);
    if (sigsetjmp(behind_the_fault, 1) == 0) *(volatile char*)16 = 1;
    disable(all), disable(minor);
    COMPARE(count_of(all) - before - (count_of(minor) - minor_before), ==, 1);
}
