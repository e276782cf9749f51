// What traces of execution must get right: deep recursion, indirect calls, longjmp, signals at any instruction,
// threads, a child, code that is loaded later, and page faults.
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ticks;
static jmp_buf back;

static void tick(int signal) { ticks += signal == SIGALRM; }

static int deep(int levels) { return levels ? deep(levels - 1) + 1 : 0; }

static int more(int value) { return value + 1; }
static int less(int value) { return value - 1; }
static int thrice(int value) { return value * 3; }
static int (*const operations[])(int) = {more, less, thrice};

static void* work(void* argument) {
    long number = (long)argument;
    int value = 0;
    for (int i = 0; i < 300; i++) value = operations[(i * 7 + number) % 3](value);
    return (void*)(long)value;
}

static int compare(const void* one, const void* other) { return *(const int*)one - *(const int*)other; }

static void jump(int levels) {
    if (!levels) longjmp(back, 1);
    jump(levels - 1);
}

int main(void) {
    struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, NULL);
    int numbers[200], status = 0;
    for (int i = 0; i < 200; i++) numbers[i] = i * 7919 % 211;
    qsort(numbers, 200, sizeof numbers[0], compare);
    for (int i = 0; i < 10; i++)
        if (!setjmp(back)) jump(i * 9);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(threads + i, NULL, work, (void*)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    void* library = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = library ? dlsym(library, "cos") : NULL;
    if (!fork()) _exit(deep(100) == 100 ? 3 : 4);
    while (wait(&status) < 0) continue;
    setitimer(ITIMER_REAL, &never, NULL);
    char* pages = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 16; i += 4096) pages[i] = 1;
    printf("%d %.3f %d %s\n", deep(200), cosine ? cosine(1.0) : 0.0, WEXITSTATUS(status), ticks ? "ticks" : "no tick");
    return 0;
}
