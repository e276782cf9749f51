// attr.build_id: PERF_RECORD_MMAP2 of a file that has one tells it in the place of device and inode; of others, these.
#include <sys/stat.h>

#include "../behaviour.h"

// Of this program: in a note of its first page. 0: it has none.
static int own_build_id(int file, uint8_t* id) {
    static uint8_t page[4096];
    if (pread(file, page, sizeof page, 0) != sizeof page) return 0;
    for (unsigned at = 0; at + 36 < sizeof page; at += 4) {
        uint32_t note[3];
        memcpy(note, page + at, sizeof note);
        if (note[0] != 4 || note[1] != 20 || note[2] != 3 || memcmp(page + at + 12, "GNU", 4)) continue;
        memcpy(id, page + at + 16, 20);
        return 1;
    }
    return 0;
}

BEHAVIOUR(mmap_build_id, NOTHING) {
    Attr attr = DUMMY;
    attr.mmap = attr.mmap2 = attr.build_id = 1;
    int event = open_event(attr), page = page_size(), file = open("/proc/self/exe", O_RDONLY);
    uint8_t id[20];
    if (!own_build_id(file, id)) SKIP("the program has no build id");
    struct ring* ring = ring_of(event, 1);
    enable(event);
    char* at = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, page);
    mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    disable(event);
    Header* header = next_record(ring);
    EQUAL(header->type, PERF_RECORD_MMAP2);
    EQUAL(header->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
    uint8_t* body = (uint8_t*)(header + 1);
    EQUAL(*(uint64_t*)(body + 8), at);
    EQUAL(*(uint64_t*)(body + 24), page);
    EQUAL(body[32], sizeof id);
    EQUAL(body[33] | body[34] | body[35], 0);
    EQUAL(memcmp(body + 36, id, sizeof id), 0);
    EQUAL(*(uint32_t*)(body + 56), PROT_READ | PROT_EXEC);
    EQUAL(*(uint32_t*)(body + 60), MAP_PRIVATE);
    header = next_record(ring);
    EQUAL(header->misc, PERF_RECORD_MISC_USER);
    EQUAL(*(uint64_t*)((uint8_t*)(header + 1) + 40), 0);
    CHECK(!next_record(ring));
}
