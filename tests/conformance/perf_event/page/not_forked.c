// A child has no mapping of its parent's buffer.
#include "../behaviour.h"

static char* parents_page;

static void touch_parents_page(void) {
    unsigned char resident;
    FAILS(mincore(parents_page, page_size(), &resident), ENOMEM);
}

BEHAVIOUR(not_forked, NOTHING) {
    parents_page = map(open_event(DUMMY), 1);
    CHECK(parents_page != MAP_FAILED);
    finish(start(touch_parents_page));
}
