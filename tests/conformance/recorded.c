/* What rr records: threads that share a lock, a signal at some instruction of a loop, a child, and the time. The
   argument says after how many microseconds the signal comes, 0: none. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t alarms;
static volatile unsigned long turns; /* of the loop that the signal breaks into */
static unsigned long sum, at_signal;

static void on_alarm(int signal) {
    at_signal = turns;
    alarms++;
}

static void* add(void* number) {
    for (long i = 1; i <= 100; i++) {
        pthread_mutex_lock(&mutex);
        sum += (long)number * i;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int count, char** arguments) {
    struct itimerval once = {.it_value = {.tv_usec = atoi(arguments[1])}};
    struct timespec now;
    pthread_t threads[2];
    int status;
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, add, (void*)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &once, NULL);
    while (once.it_value.tv_usec && !alarms) turns++;
    pid_t child = fork();
    if (!child) _exit(3);
    waitpid(child, &status, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    printf("sum %lu, signal at %lu of %lu, child %d of %d, at %ld.%09ld\n", sum, at_signal, turns, WEXITSTATUS(status),
           child > 0, now.tv_sec, now.tv_nsec);
    return 0;
}
