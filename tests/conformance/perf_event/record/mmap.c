// attr.mmap: a record for each mapping of code, and for no other.
#include "../behaviour.h"

BEHAVIOUR(mmap, NOTHING) {
    Attr attr = DUMMY;
    attr.mmap = 1;
    int event = open_event(attr), page = page_size();
    struct ring* ring = ring_of(event, 1);
    enable(event);
    static const int PROTECTIONS[] = {
        PROT_EXEC, PROT_READ, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE | PROT_EXEC,
        PROT_NONE};
    void* at[6];
    for (int i = 0; i < 6; i++) at[i] = mmap(NULL, page, PROTECTIONS[i], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    disable(event);
    for (int i = 0; i < 6; i += 2) {
        if (i == 4 || PROTECTIONS[i] & PROT_EXEC) {
            Header* header = next_of(ring, PERF_RECORD_MMAP);
            CHECK(header);
            uint64_t* body = (uint64_t*)(header + 1);
            EQUAL((uint32_t)body[0], getpid());
            EQUAL(body[1], at[i]);
            EQUAL(body[2], page);
            EQUAL(strcmp((char*)(body + 4), "//anon"), 0);
            EQUAL(header->misc, PERF_RECORD_MISC_USER);
        }
    }
    EQUAL(remaining(ring, PERF_RECORD_MMAP), 0);
}
