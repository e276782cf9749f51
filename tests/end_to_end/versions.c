/* Two versions of a program: NEW differs from the old in `compute`, and in what that calls. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned hash(unsigned n) {
    volatile unsigned h = 5381;
    for (unsigned i = 0; i < n; i++) h = h * 33 + i;
    return h;
}

#ifdef NEW
__attribute__((noinline)) static unsigned further(unsigned n) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) sum += i;
    return sum;
}
#define compute_all compute_more
__attribute__((noinline)) unsigned compute(unsigned n) { return hash(n) + hash(n / 2) + further(n); }
#else
__attribute__((noinline)) unsigned compute(unsigned n) { return hash(n); }
#endif

/* The same code under another name. */
__attribute__((noinline)) unsigned compute_all(unsigned n) {
    volatile unsigned sum = 1;
    for (unsigned i = 0; i < n; i++) sum *= i | 1;
    return sum;
}

static void *thread(void *n) {
    return (void *)(unsigned long)(compute((unsigned)(unsigned long)n) + compute_all(100));
}

int main(void) {
    unsigned sum = compute(1000) + compute_all(500);
#ifdef TASKS
    pthread_t id;
    void *result;
    pthread_create(&id, 0, thread, (void *)2000);
    pthread_join(id, &result);
    if (fork() == 0) _exit(compute(3000) & 1);
    wait(0);
#else
    (void)thread;
#endif
    return sum == 42;
}
