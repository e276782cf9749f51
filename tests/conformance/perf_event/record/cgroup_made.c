// attr.cgroup: a PERF_RECORD_CGROUP for each control group that the task makes, with its number and its path.
#include <sys/mount.h>
#include <sys/stat.h>

#include "../behaviour.h"

#define GROUPS "/sys/fs/cgroup"

BEHAVIOUR(cgroup_made, A_MACHINE | ROOT) {
    int mounted = access(GROUPS "/cgroup.procs", F_OK) != 0;
    if (mounted) {
        if (mount("none", GROUPS, "cgroup2", 0, "")) SKIP("there are no control groups");
        // perf's controller is there when first any other has been enabled
        EQUAL(write_error(GROUPS "/cgroup.subtree_control", "+pids"), 0);
        EQUAL(write_error(GROUPS "/cgroup.subtree_control", "-pids"), 0);
    }
    Attr attr = DUMMY;
    attr.cgroup = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    SUCCEEDS(mkdir(GROUPS "/made", 0755));
    SUCCEEDS(mkdir(GROUPS "/made/within", 0755));
    disable(event);
    static const char* const PATHS[] = {"/made", "/made/within"};
    uint64_t ids[2];
    for (int i = 0; i < 2; i++) {
        uint64_t* body = body_of(ring, PERF_RECORD_CGROUP);
        ids[i] = body[0];
        EQUAL(strcmp((char*)(body + 1), PATHS[i]), 0);
    }
    CHECK(ids[0] != ids[1]);
    CHECK(!next_record(ring));
    struct stat status;
    SUCCEEDS(stat(GROUPS "/made", &status));
    EQUAL(ids[0], status.st_ino);
    SUCCEEDS(rmdir(GROUPS "/made/within"));
    SUCCEEDS(rmdir(GROUPS "/made"));
    if (mounted) SUCCEEDS(umount(GROUPS));
}
