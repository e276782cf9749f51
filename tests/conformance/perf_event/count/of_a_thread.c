// A thread counts alone, whichever opened the event.
#include "../behaviour.h"

static int worker, gate[2], done[2];

static void* count_a_million(void* unused) {
    char byte;
    worker = syscall(SYS_gettid);
    CHECK(write(done[1], "t", 1) == 1);
    CHECK(read(gate[0], &byte, 1) == 1);
    million();
    return unused;
}

BEHAVIOUR(of_a_thread, PMU) {
    SUCCEEDS(pipe(gate));
    SUCCEEDS(pipe(done));
    pthread_t thread;
    pthread_create(&thread, NULL, count_a_million, NULL);
    char byte;
    EQUAL(read(done[0], &byte, 1), 1);
    int theirs = open_of(INSTRUCTIONS, worker, -1, -1), ours = open_event(INSTRUCTIONS);
    enable(theirs);
    enable(ours);
    EQUAL(write(gate[1], "g", 1), 1);
    pthread_join(thread, NULL);
    disable(ours);
    COMPARE(count_of(theirs), >=, 1000000);
    COMPARE(count_of(ours), <, 500000);
}
