// Sleeps of decades: nanosleep, a timerfd and its edge, a futex's timeout in another thread; and who works in between.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 500000000 };  // seconds: 15 years

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void* waits(void* unused) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG;
    pthread_mutex_lock(&mutex);
    printf("condition %d\n", pthread_cond_timedwait(&never, &mutex, &until));
    return 0;
}

int main(void) {
    long start = now();
    struct timespec decades = {LONG, 5}, second = {1, 0};
    printf("nanosleep %d", nanosleep(&decades, 0));
    printf(" %ld\n", now() - start);
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    nanosleep(&second, 0);
    pthread_join(thread, 0);
    printf("joined %ld\n", now() - start);
    int timer = timerfd_create(CLOCK_REALTIME, 0), instance = epoll_create1(0);
    struct epoll_event interest = {.events = EPOLLIN | EPOLLET}, told;
    epoll_ctl(instance, EPOLL_CTL_ADD, timer, &interest);
    struct itimerspec far = {{0, 0}, {LONG, 0}};
    timerfd_settime(timer, 0, &far, 0);
    printf("edge %d", epoll_wait(instance, &told, 1, -1));
    uint64_t passed = 0;
    printf(", read %zd", read(timer, &passed, 8));
    printf(": %ld %ld\n", (long)passed, now() - start);
    volatile long sum = 0;
    for (int i = 0; i < 100000; i++) sum += i;
    printf("%ld\n", sum);
}
