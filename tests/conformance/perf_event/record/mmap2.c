// attr.mmap2: the same with device, inode, protection and flags.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../behaviour.h"

BEHAVIOUR(mmap2, NOTHING) {
    Attr attr = DUMMY;
    attr.mmap = attr.mmap2 = 1;
    int event = open_event(attr), page = page_size(), file = open("/proc/self/exe", O_RDONLY);
    char path[256] = "";
    COMPARE(readlink("/proc/self/exe", path, sizeof path - 1), >, 0);
    struct stat status;
    SUCCEEDS(fstat(file, &status));
    struct ring* ring = ring_of(event, 1);
    enable(event);
    char* at = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, page);
    disable(event);
    uint64_t* body = body_of(ring, PERF_RECORD_MMAP2);
    EQUAL((uint32_t)body[0], getpid());
    EQUAL(body[1], at);
    EQUAL(body[2], page);
    EQUAL(body[3], page);
    EQUAL((uint32_t)body[4], major(status.st_dev));
    EQUAL(body[4] >> 32, minor(status.st_dev));
    EQUAL(body[5], status.st_ino);
    EQUAL((uint32_t)body[7], PROT_READ | PROT_EXEC);
    EQUAL(body[7] >> 32, MAP_PRIVATE);
    EQUAL(strcmp((char*)(body + 8), path), 0);
}
