// A group whose reading has 16 KiB or more cannot be: E2BIG.
#include "../behaviour.h"

BEHAVIOUR(group_reads_too_much, NOTHING) {
    struct rlimit many = {1024, 1024};
    setrlimit(RLIMIT_NOFILE, &many);
    Attr attr = DUMMY;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
    int leader = open_event(attr), members = 1;
    while (try_open(attr, 0, -1, leader, 0) >= 0) members++;
    EQUAL(errno, E2BIG);
    EQUAL(members, (16384 - 8 - 1) / 24);
}
