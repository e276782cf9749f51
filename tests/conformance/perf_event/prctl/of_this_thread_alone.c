// prctl is about the calling thread's events: what another thread of the process has opened goes on.
#include "../behaviour.h"

static void* disable_all(void* unused) {
    SUCCEEDS(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
    return unused;
}

BEHAVIOUR(of_this_thread_alone, NOTHING) {
    int event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(event);
    pthread_t thread;
    EQUAL(pthread_create(&thread, NULL, disable_all, NULL), 0);
    EQUAL(pthread_join(thread, NULL), 0);
    uint64_t count = count_of(event);
    fault(10);
    COMPARE(count_of(event), >=, count + 10);
}
