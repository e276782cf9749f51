// When all mappings have gone the next one may have another size.
#include "../behaviour.h"

BEHAVIOUR(mapped_anew, NOTHING) {
    int event = open_event(DUMMY);
    char* at = map(event, 2);
    CHECK(at != MAP_FAILED);
    munmap(at, 3 * page_size());
    CHECK(map(event, 4) != MAP_FAILED);
}
