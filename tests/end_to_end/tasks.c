/* Three threads, two children with a thread each, and signals among them, without a race that anybody could count: each
   does its own work, and what is shared is handed over by pipes, locks or waits. What it prints depends on the
   schedule: times, CPUs and the order in which things came. Every task has a name of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread volatile long taken; /* signals */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long order;
static int quiet; /* what is done does not depend on the schedule, but where a thread is waited for */

static void take(int number) { taken++; }

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* `times` thousand rounds; a signal to itself after each thousand. */
static long work(long times) {
    volatile long sum = 0;
    for (long i = 0; i < times; i++) {
        for (long j = 0; j < 1000; j++) sum += j;
        raise(SIGUSR1);
    }
    return taken == times ? sum : -1;
}

static void* thread(void* name) {
    char* text = name;
    prctl(PR_SET_NAME, text);
    long sum = work(text[strlen(text) - 1] - '0' + 3);
    return (void*)sum;
}

static void come(const char* name) {
    pthread_mutex_lock(&lock);
    printf("%s came as number %ld at %ld on %d\n", name, order++, now(), sched_getcpu());
    pthread_mutex_unlock(&lock);
}

static void* talking_thread(void* name) {
    void* sum = thread(name);
    if (!quiet) come(name);
    return sum;
}

static void child(int number, int out) {
    char name[16], of_thread[16];
    sprintf(name, "child%d", number);
    sprintf(of_thread, "grand%d", number);
    prctl(PR_SET_NAME, name);
    pthread_t other;
    void* sum;
    pthread_create(&other, 0, thread, of_thread);
    long own = work(5 + number);
    pthread_join(other, &sum);
    dprintf(out, "%s %ld %ld\n", name, own, (long)sum);
    exit(number);
}

int main(int count, char** arguments) {
    quiet = count > 1;
    struct sigaction action = {.sa_handler = take, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    int ends[2];
    if (pipe(ends)) return 1;
    for (int i = 1; i <= 2; i++)
        if (!fork()) child(i, ends[1]);
    close(ends[1]);
    static char names[3][16] = {"thread1", "thread2", "thread3"};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(threads + i, 0, talking_thread, names[i]);
    for (int i = 0; i < 3; i++) {
        void* sum;
        pthread_join(threads[i], &sum);
        printf("%s: %ld\n", names[i], (long)sum);
    }
    char line[100];
    for (ssize_t got; (got = read(ends[0], line, sizeof line)) > 0;) fwrite(line, 1, got, stdout);
    for (int status, pid; (pid = wait(&status)) > 0;)
        printf("%d ended with %d at %ld\n", pid, WEXITSTATUS(status), now());
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("%ld us, %ld switches\n", usage.ru_utime.tv_usec, usage.ru_nvcsw + usage.ru_nivcsw);
    return 0;
}
