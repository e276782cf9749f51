/* Two threads, each with a counter of its own, and both counters in one cache line. */
#include <pthread.h>
#include <stdlib.h>

static struct {
    volatile long first, second;
} counters __attribute__((aligned(64)));

static long times;

__attribute__((noinline)) static void *adds_to_first(void *unused) {
    for (long i = 0; i < times; i++) counters.first++;
    return unused;
}

__attribute__((noinline)) static void *adds_to_second(void *unused) {
    for (long i = 0; i < times; i++) counters.second++;
    return unused;
}

int main(int argc, char **argv) {
    times = (argc > 1 ? atol(argv[1]) : 1) * 20000;
    pthread_t other;
    if (pthread_create(&other, 0, adds_to_second, 0)) return 1;
    adds_to_first(0);
    pthread_join(other, 0);
    return counters.first + counters.second != 2 * times;
}
