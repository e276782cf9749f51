// When as many descriptors are open as there may be: EMFILE; when one is closed there is room again.
#include "../behaviour.h"

BEHAVIOUR(no_descriptor_left, NOTHING) {
    struct rlimit few = {20, 20};
    SUCCEEDS(setrlimit(RLIMIT_NOFILE, &few));
    int last = -1, event;
    while ((event = try_open(DUMMY, 0, -1, -1, 0)) >= 0) last = event;
    EQUAL(errno, EMFILE);
    EQUAL(last, 19);
    close(last);
    SUCCEEDS(try_open(DUMMY, 0, -1, -1, 0));
}
