// A part of the mapping cannot go, or be protected otherwise: EINVAL. All of it can.
#include "../behaviour.h"

BEHAVIOUR(not_split, NOTHING) {
    int event = open_event(DUMMY);
    char* at = map(event, 4);
    CHECK(at != MAP_FAILED);
    FAILS(munmap(at + 3 * page_size(), 2 * page_size()), EINVAL);
    FAILS(munmap(at, page_size()), EINVAL);
    FAILS(mprotect(at, page_size(), PROT_READ), EINVAL);
    SUCCEEDS(mprotect(at, 5 * page_size(), PROT_READ));
    SUCCEEDS(munmap(at, 5 * page_size()));
}
