// ... what RLIMIT_MEMLOCK allows comes on top, and is free again when it is unmapped.
#include "../behaviour.h"

static void map_beyond(void) {
    struct rlimit some = {17 * page_size(), 17 * page_size()};
    SUCCEEDS(setrlimit(RLIMIT_MEMLOCK, &some));
    become_nobody();
    int event = open_event(DUMMY), other = open_event(DUMMY);
    char* at = map(event, 16);
    CHECK(at != MAP_FAILED);
    FAILS((long)map(other, 16), EPERM);
    SUCCEEDS(munmap(at, 17 * page_size()));
    CHECK(map(other, 16) != MAP_FAILED);
}

BEHAVIOUR(locked_memory_of_the_process, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 0);
    set_sysctl("perf_event_mlock_kb", 0);
    apart(map_beyond);
}
