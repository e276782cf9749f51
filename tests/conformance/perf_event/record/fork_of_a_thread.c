// ... of a thread: of the same process.
#include "../behaviour.h"

static int new_thread;

static void* note_tid(void* unused) {
    new_thread = syscall(SYS_gettid);
    return unused;
}

BEHAVIOUR(fork_of_a_thread, NOTHING) {
    Attr attr = DUMMY;
    attr.task = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    pthread_t thread;
    pthread_create(&thread, NULL, note_tid, NULL);
    pthread_join(thread, NULL);
    disable(event);
    uint32_t* body = (uint32_t*)body_of(ring, PERF_RECORD_FORK);
    EQUAL(body[0], getpid());
    EQUAL(body[1], getpid());
    EQUAL(body[2], new_thread);
    EQUAL(body[3], getpid());
}
