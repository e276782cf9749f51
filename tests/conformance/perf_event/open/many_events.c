// 500 events that count at once in turns, and all can be read.
#include "../behaviour.h"

BEHAVIOUR(many_events, PMU) {
    struct rlimit many = {1024, 1024};
    setrlimit(RLIMIT_NOFILE, &many);
    enum { EVENTS = 500 };
    int events[EVENTS];
    for (int i = 0; i < EVENTS; i++) events[i] = open_event(INSTRUCTIONS);
    for (int i = 0; i < EVENTS; i++) enable(events[i]);
    million();
    int counted = 0;
    for (int i = 0; i < EVENTS; i++) counted += count_of(events[i]) > 0;
    COMPARE(counted, >, 0);
    for (int i = 0; i < EVENTS; i++) close(events[i]);
}
