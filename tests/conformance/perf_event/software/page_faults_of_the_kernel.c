// A page that a system call touches faults in the kernel: it counts, unless exclude_kernel leaves it out.
#include "../behaviour.h"

BEHAVIOUR(page_faults_of_the_kernel, NOTHING) {
    int user = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.exclude_kernel = 0;
    int both = open_event(attr);
    int file = open("/dev/zero", O_RDONLY);
    char* at = fresh(1);
    enable(user), enable(both);
    EQUAL(read(file, at, 1), 1);
    disable(both), disable(user);
    EQUAL(count_of(user), 0);
    EQUAL(count_of(both), 1);
}
