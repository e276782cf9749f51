// A thread that has ended: its count stays.
#include "../behaviour.h"

static int thread_event;

static void* open_and_fault(void* unused) {
    thread_event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(thread_event);
    fault(20);
    return unused;
}

BEHAVIOUR(ended_thread, NOTHING) {
    pthread_t thread;
    pthread_create(&thread, NULL, open_and_fault, NULL);
    pthread_join(thread, NULL);
    uint64_t count = count_of(thread_event);
    COMPARE(count, >=, 20);
    fault(20);
    EQUAL(count_of(thread_event), count);
}
