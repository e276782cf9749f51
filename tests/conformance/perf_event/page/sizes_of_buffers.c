// A buffer has one page and a power of two of data pages.
#include "../behaviour.h"

BEHAVIOUR(sizes_of_buffers, NOTHING) {
    int event = open_event(DUMMY);
    for (int pages = 1; pages <= 9; pages++) {
        int fits = (pages & (pages - 1)) == 0;
        char* at = map(event, pages);
        EQUAL(at != MAP_FAILED, fits);
        if (!fits) EQUAL(errno, EINVAL);
        if (fits) munmap(at, (1 + pages) * page_size());
    }
}
