// attr.namespaces: PERF_RECORD_NAMESPACES when a task takes new ones: device and inode of each.
#include <sys/stat.h>

#include "../behaviour.h"

static struct ring* namespaces_ring;

BEHAVIOUR(namespaces, ROOT) {
    Attr attr = DUMMY;
    attr.namespaces = 1;
    int event = open_event(attr);
    namespaces_ring = ring_of(event, 1);
    enable(event);
    SUCCEEDS(unshare(CLONE_NEWUTS));
    disable(event);
    uint64_t* body = body_of(namespaces_ring, PERF_RECORD_NAMESPACES);
    EQUAL((uint32_t)body[0], getpid());
    COMPARE(body[1], >=, 7);
    struct stat status;
    SUCCEEDS(stat("/proc/self/ns/uts", &status));
    EQUAL(body[2 + 2 * 1 + 1], status.st_ino);  // UTS_NS_INDEX
}
