// Whatever arms a timer of the kernel: sleeps, waits with a timeout, interval timers, POSIX timers, timerfds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct timespec SHORT = {0, 2000000}, LONG = {0, 12000000};

static void handle(int signal) { (void)signal; }

static struct timespec soon(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += SHORT.tv_nsec;
    if (at.tv_nsec >= 1000000000) at.tv_nsec -= 1000000000, at.tv_sec++;
    return at;
}

static void sleeps(void) {
    static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    struct sched_param priority = {.sched_priority = 5};
    struct timespec at;
    for (int index = 0; index < 4; index++) {
        at = soon(CLOCKS[index]);
        clock_nanosleep(CLOCKS[index], 0, &SHORT, NULL);
        clock_nanosleep(CLOCKS[index], TIMER_ABSTIME, &at, NULL);  // which has passed
        at = soon(CLOCKS[index]);
        clock_nanosleep(CLOCKS[index], TIMER_ABSTIME, &at, NULL);
    }
    syscall(SYS_nanosleep, &SHORT, NULL);
    prctl(PR_SET_TIMERSLACK, 7000);
    nanosleep(&SHORT, NULL);
    prctl(PR_SET_TIMERSLACK, 0);
    sched_setscheduler(0, SCHED_FIFO, &priority);
    nanosleep(&SHORT, NULL);
    poll(NULL, 0, 2);
    priority.sched_priority = 0;
    sched_setscheduler(0, SCHED_OTHER, &priority);
}

static void waits(void) {
    struct timeval timeout = {0, 2000};
    struct epoll_event event;
    struct timespec at;
    sigset_t set;
    uint32_t word = 1;
    int semaphore = semget(IPC_PRIVATE, 1, 0600), instance = epoll_create1(0);
    struct sembuf down = {0, -1, 0};
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t queue = mq_open("/slept", O_RDWR | O_CREAT, 0600, &attributes);
    char data[8];
    poll(NULL, 0, 2);
    poll(NULL, 0, 100);
    poll(NULL, 0, 0);
    select(0, NULL, NULL, NULL, &timeout);
    epoll_wait(instance, &event, 1, 2);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigtimedwait(&set, NULL, &SHORT);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &SHORT, NULL, 0);  // which is 1
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &SHORT, NULL, 0);
    at = soon(CLOCK_REALTIME);
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 1, &at, NULL, -1);
    word = 0;
    syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, &at, NULL, 0);  // which is free
    semtimedop(semaphore, &down, 1, &SHORT);
    at = soon(CLOCK_REALTIME);
    mq_timedreceive(queue, data, sizeof data, NULL, &at);
    mq_timedreceive(queue, data, sizeof data, NULL, &at);  // which has passed
    mq_unlink("/slept");
    nice(5);
    poll(NULL, 0, 20);
}

static void interval_timers(void) {
    struct itimerval once = {.it_value = {0, 2000}}, again = {{0, 2000}, {0, 2000}}, later = {.it_value = {9, 0}}, off = {0};
    sigset_t alarms;
    setitimer(ITIMER_REAL, &once, NULL);
    pause();
    setitimer(ITIMER_REAL, &again, NULL);
    pause();
    pause();
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_REAL, &later, NULL);
    setitimer(ITIMER_REAL, &later, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_VIRTUAL, &later, NULL);
    setitimer(ITIMER_VIRTUAL, &off, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);  // it rests until its signal is taken
    setitimer(ITIMER_REAL, &again, NULL);
    nanosleep(&LONG, NULL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, SIG_IGN);  // for ever, then
    setitimer(ITIMER_REAL, &again, NULL);
    nanosleep(&LONG, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &once, NULL);
    nanosleep(&(struct timespec){9, 0}, NULL);  // which it ends
}

static void posix_timers(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM}, none = {.sigev_notify = SIGEV_NONE};
    struct itimerspec once = {.it_value = SHORT}, again = {SHORT, SHORT}, late = {{1, 0}, {0}}, off = {0};
    timer_t timer;
    sigset_t alarms;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &once, NULL);
    pause();
    timer_settime(timer, 0, &again, NULL);
    pause();
    pause();
    timer_settime(timer, 0, &off, NULL);
    timer_settime(timer, 0, &again, NULL);
    timer_delete(timer);
    timer_create(CLOCK_REALTIME, &none, &timer);
    timer_settime(timer, 0, &again, NULL);
    timer_gettime(timer, &again);
    timer_delete(timer);
    again = (struct itimerspec){SHORT, SHORT};
    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer);  // no such timer
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {9, 0}}, NULL);
    timer_delete(timer);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    timer_create(CLOCK_REALTIME, &event, &timer);
    late.it_value = soon(CLOCK_REALTIME);
    late.it_value.tv_sec--;
    timer_settime(timer, TIMER_ABSTIME, &late, NULL);  // which has passed
    sigwaitinfo(&alarms, NULL);
    timer_delete(timer);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &again, NULL);
    nanosleep(&LONG, NULL);
    sigwaitinfo(&alarms, NULL);
    timer_delete(timer);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    signal(SIGALRM, SIG_IGN);  // once a tick
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &again, NULL);
    nanosleep(&LONG, NULL);
    timer_delete(timer);
    signal(SIGALRM, handle);
}

static void timer_files(void) {
    struct itimerspec once = {.it_value = SHORT}, again = {SHORT, SHORT}, past = {.it_value = {1, 0}}, off = {0};
    int real = timerfd_create(CLOCK_REALTIME, 0), alarm = timerfd_create(CLOCK_BOOTTIME_ALARM, 0);
    uint64_t times;
    timerfd_settime(real, 0, &off, NULL);
    timerfd_settime(real, TFD_TIMER_ABSTIME, &past, NULL);
    read(real, &times, sizeof times);
    timerfd_settime(real, 0, &once, NULL);
    read(real, &times, sizeof times);
    timerfd_settime(real, 0, &again, NULL);
    read(real, &times, sizeof times);
    read(real, &times, sizeof times);
    timerfd_settime(real, 0, &again, NULL);
    close(real);
    timerfd_settime(alarm, 0, &once, NULL);
    read(alarm, &times, sizeof times);
    clock_nanosleep(CLOCK_REALTIME_ALARM, 0, &SHORT, NULL);
}

int main(void) {
    signal(SIGALRM, handle);
    sleeps();
    waits();
    interval_timers();
    posix_timers();
    timer_files();
    pid_t child = fork();
    if (child == 0) {
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {9, 0}}, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
