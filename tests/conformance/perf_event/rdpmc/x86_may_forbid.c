// x86's file rdpmc: 0 lets nobody read counters, and events that are opened then are not read; 2 lets everybody.
#include "../user_counters.h"

#ifdef __x86_64__
static const char* const FILE_OF_RDPMC = "/sys/bus/event_source/devices/cpu/rdpmc";

static void reads(unsigned long expected) {
    int pid = fork();
    if (pid == 0) {
        counter_value(0);
        _exit(0);
    }
    int status;
    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WIFSIGNALED(status) ? WTERMSIG(status) : 0, expected);
}

BEHAVIOUR(x86_may_forbid, PMU | A_MACHINE) {
    EQUAL(number_in(FILE_OF_RDPMC), 1);
    EQUAL(write_error(FILE_OF_RDPMC, "3"), EINVAL);
    reads(SIGSEGV);
    EQUAL(write_error(FILE_OF_RDPMC, "0"), 0);
    int event = open_event(INSTRUCTIONS);
    struct perf_event_mmap_page* page = map(event, 0);
    CHECK(page != MAP_FAILED);
    enable(event);
    EQUAL(page->index, 0);
    EQUAL(page->cap_user_rdpmc, 0);
    EQUAL(write_error(FILE_OF_RDPMC, "2"), 0);
    EQUAL(number_in(FILE_OF_RDPMC), 2);
    reads(0);
    EQUAL(write_error(FILE_OF_RDPMC, "1"), 0);
    reads(SIGSEGV);
}
#else
BEHAVIOUR(x86_may_forbid, PMU | A_MACHINE) { EQUAL(access(pmu_file("rdpmc"), F_OK), -1); }
#endif
