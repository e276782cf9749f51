// A private mapping, one that begins elsewhere, none of a whole page: EINVAL.
#include "../behaviour.h"

BEHAVIOUR(mmap_errors, NOTHING) {
    int event = open_event(DUMMY);
    long page = page_size();
    FAILS((long)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, event, 0), EINVAL);
    FAILS((long)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, event, page), EINVAL);
    FAILS((long)mmap(NULL, 0, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0), EINVAL);
}
