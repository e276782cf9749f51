// Sleeps by timers, and after each sleep wakes a thread by a pipe: where there is another CPU, from that.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPS = 7 };

static int ends[2];

static void* wait_for_bytes(void* unused) {
    char byte;
    while (read(ends[0], &byte, 1) == 1);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pipe(ends) || pthread_create(&thread, NULL, wait_for_bytes, NULL)) return 1;
    for (int i = 1; i <= SLEEPS; i++) {
        const struct timespec time = {0, i * 300000};
        nanosleep(&time, NULL);
        if (write(ends[1], "x", 1) != 1) return 1;
    }
    close(ends[1]);
    pthread_join(thread, NULL);
    return 0;
}
