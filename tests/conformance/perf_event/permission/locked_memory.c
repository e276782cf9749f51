// Buffers are locked memory: perf_event_mlock_kb a CPU for a user, then RLIMIT_MEMLOCK for a process; EPERM beyond.
#include "../behaviour.h"

static void map_until_refused(void) {
    struct rlimit none = {0, 0};
    SUCCEEDS(setrlimit(RLIMIT_MEMLOCK, &none));
    become_nobody();
    long limit = number_in("/proc/sys/kernel/perf_event_mlock_kb") * 1024 / page_size() * sysconf(_SC_NPROCESSORS_ONLN);
    int mapped = 0;
    while (map(open_event(DUMMY), 16) != MAP_FAILED) mapped++;
    EQUAL(errno, EPERM);
    EQUAL(mapped, limit / 17);
}

BEHAVIOUR(locked_memory, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 0);
    set_sysctl("perf_event_mlock_kb", 516);
    apart(map_until_refused);
}
