// /proc/self/fd says what it is.
#include "../behaviour.h"

BEHAVIOUR(its_name, NOTHING) {
    int event = open_event(DUMMY);
    char path[40], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", event);
    COMPARE(readlink(path, name, sizeof name - 1), >, 0);
    EQUAL(strcmp(name, "anon_inode:[perf_event]"), 0);
}
