// inherit_thread: threads inherit the event, processes do not.
#include "../behaviour.h"

static void* fault_hundred(void* unused) {
    fault(100);
    return unused;
}

static void fault_thousand(void) { fault(1000); }

BEHAVIOUR(threads_alone, NOTHING) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.inherit = attr.inherit_thread = 1;
    int event = open_event(attr);
    enable(event);
    pthread_t thread;
    pthread_create(&thread, NULL, fault_hundred, NULL);
    pthread_join(thread, NULL);
    finish(start(fault_thousand));
    COMPARE(count_of(event), >=, 100);
    COMPARE(count_of(event), <, 1000);
}
