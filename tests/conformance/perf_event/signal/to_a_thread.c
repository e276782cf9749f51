// F_SETOWN_EX: the signal is a thread's.
#include "../behaviour.h"

static volatile int told_tid, own_tid;

static void tell_thread(int number) { (void)number, told_tid = syscall(SYS_gettid); }

static void* own_and_wait(void* event) {
    struct f_owner_ex owner = {F_OWNER_TID, syscall(SYS_gettid)};
    own_tid = owner.pid;
    SUCCEEDS(fcntl(*(int*)event, F_SETOWN_EX, &owner));
    SUCCEEDS(fcntl(*(int*)event, F_SETFL, O_RDWR | O_ASYNC));
    while (!told_tid) sleep_ms(1);
    return NULL;
}

BEHAVIOUR(to_a_thread, NOTHING) {
    signal(SIGIO, tell_thread);
    Attr attr = SOFTWARE(PAGE_FAULTS_MIN);
    attr.sample_period = 1;
    attr.wakeup_events = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    pthread_t thread;
    pthread_create(&thread, NULL, own_and_wait, &event);
    while (!own_tid) sleep_ms(1);
    sleep_ms(10);
    enable(event);
    touch(fresh(1), 1);
    disable(event);
    pthread_join(thread, NULL);
    EQUAL(told_tid, own_tid);
    CHECK(own_tid != getpid());
}
