// ... of a thread: its process, and itself.
#include "../behaviour.h"

static struct ring* thread_ring;
static int thread_id;

static void* sample_in_a_thread(void* unused) {
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID;
    int event = open_event(attr);
    thread_ring = ring_of(event, 1);
    enable(event);
    fault(1);
    disable(event);
    thread_id = syscall(SYS_gettid);
    return unused;
}

BEHAVIOUR(tid_of_a_thread, NOTHING) {
    pthread_t thread;
    pthread_create(&thread, NULL, sample_in_a_thread, NULL);
    pthread_join(thread, NULL);
    uint32_t* ids = (uint32_t*)body_of(thread_ring, PERF_RECORD_SAMPLE);
    EQUAL(ids[0], getpid());
    EQUAL(ids[1], thread_id);
    CHECK(thread_id != getpid());
}
