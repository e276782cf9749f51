// version, compat_version, size, data_offset, data_size, and no AUX area.
#include "../behaviour.h"

BEHAVIOUR(fields_of_the_page, NOTHING) {
    int event = open_event(DUMMY);
    struct perf_event_mmap_page* page = map(event, 4);
    CHECK(page != MAP_FAILED);
    EQUAL(page->version, 0);
    EQUAL(page->compat_version, 0);
    EQUAL(page->size, offsetof(struct perf_event_mmap_page, __reserved));
    EQUAL(page->data_offset, page_size());
    EQUAL(page->data_size, 4 * page_size());
    EQUAL(page->data_head, 0);
    EQUAL(page->data_tail, 0);
    EQUAL(page->aux_head, 0);
    EQUAL(page->aux_tail, 0);
    EQUAL(page->aux_offset, 0);
    EQUAL(page->aux_size, 0);
    EQUAL(page->cap_bit0, 0);
    EQUAL(page->cap_bit0_is_deprecated, 1);
    EQUAL(page->lock % 2, 0);
}
