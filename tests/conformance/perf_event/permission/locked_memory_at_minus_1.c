// perf_event_paranoid -1: buffers have no limit.
#include "../behaviour.h"

static void map_without_limit(void) {
    struct rlimit none = {0, 0};
    SUCCEEDS(setrlimit(RLIMIT_MEMLOCK, &none));
    become_nobody();
    CHECK(map(open_event(DUMMY), 16) != MAP_FAILED);
}

BEHAVIOUR(locked_memory_at_minus_1, A_MACHINE) {
    set_sysctl("perf_event_paranoid", -1);
    set_sysctl("perf_event_mlock_kb", 0);
    apart(map_without_limit);
}
