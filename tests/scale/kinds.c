// What decoders of traces find hard, as often as one wants it: kinds KIND TIMES [FILE].
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, FUNCTIONS = 4096, ROOM = 64 };

static long times;
static const char* file;
static volatile long ticks;
static jmp_buf back;

static long more(long value) { return value + 1; }
static long less(long value) { return value - 1; }
static long thrice(long value) { return value * 3; }
static long halved(long value) { return value / 2; }
static long (*const operations[])(long) = {more, less, thrice, halved, more, thrice, less};

// By a table of calls, and one of jumps.
static long indirect(long seed) {
    long value = seed;
    for (long i = 0; i < times; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        value = operations[(unsigned long)seed >> 33 & 3](value);
        switch ((unsigned long)seed >> 40 & 7) {
            case 0: value += 3; break;
            case 1: value ^= seed; break;
            case 2: value -= i; break;
            case 3: value = -value; break;
            case 4: value |= 1; break;
            case 5: value *= 5; break;
            case 6: value &= 0xffffff; break;
            default: value += operations[i % 7](i);
        }
    }
    return value;
}

static long jumps(void) { return indirect(1) & 1; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static void* work(void* argument) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&lock);
        shared += operations[i % 7]((long)argument);
        pthread_mutex_unlock(&lock);
        if (i % 64 == 0) sched_yield();
    }
    return NULL;
}

static long threads(void) {
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(all + i, NULL, work, (void*)i);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
    return shared;
}

static void tick(int signal) { ticks += signal == SIGALRM; }

static long signals(void) {
    struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    static char from[1 << 14], to[1 << 14];
    long sum = 0;
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < times; i++) {
        __builtin_memcpy(to, from, sizeof from);
        for (int k = 0; k < 100; k++) sum += operations[(i + k) % 7](k);
        if (i % 16 == 0) raise(SIGALRM);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return sum + (ticks > 0);
}

static long children(void) {
    long sum = 0;
    for (long i = 0; i < times; i++) {
        if (!fork()) {
            long value = i;
            for (int k = 0; k < 1000; k++) value = operations[(unsigned)(k + i) % 7](value);
            if (i % 4 == 0) execl("/bin/true", "true", NULL);
            _exit(value & 7);
        }
        int status;
        if (i % 4 == 3)
            for (int k = 0; k < 4; k++) wait(&status), sum += WEXITSTATUS(status);
    }
    while (wait(NULL) > 0) continue;
    return sum;
}

static long libraries(void) {
    static const char* const names[] = {"libm.so.6", "libz.so.1", "liblzma.so.5", "libbz2.so.1.0"};
    static const char* const symbols[] = {"cos", "zlibVersion", "lzma_version_number", "BZ2_bzlibVersion"};
    long sum = 0;
    for (long i = 0; i < times; i++) {
        void* library = dlopen(names[i % 4], i & 4 ? RTLD_NOW : RTLD_LAZY);
        if (!library) continue;
        void* symbol = dlsym(library, symbols[i % 4]);
        if (symbol && i % 4 == 0) sum += ((double (*)(double))symbol)((double)i) > 0;
        if (symbol && i % 4 != 0) sum += ((long (*)(void))symbol)() & 1;
        dlclose(library);
    }
    return sum;
}

static void jump(int levels) {
    if (!levels) longjmp(back, 1);
    jump(levels - 1);
    ticks++;
}

static long longjmps(void) {
    for (volatile long i = 0; i < times; i++)
        if (!setjmp(back)) jump((int)(i * 9 % 150));
    return ticks;
}

static long deep(long levels) { return levels ? deep(levels - 1) + 1 : 0; }
static long odd(long number);
static long even(long number) { return number ? odd(number - 1) : 1; }
static long odd(long number) { return number ? even(number - 1) ^ (number & 1) : 0; }

static long recursion(void) {
    long sum = 0;
    for (long i = 0; i < times; i++) sum += deep(i % 300) + even(i % 500);
    return sum;
}

// Functions that are written into a file, which is mapped once to write and once to execute, and never changed.
static long generated(void) {
    int descriptor = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, FUNCTIONS * ROOM)) return -1;
    unsigned char* code = mmap(NULL, FUNCTIONS * ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    unsigned char* run = mmap(NULL, FUNCTIONS * ROOM, PROT_READ | PROT_EXEC, MAP_SHARED, descriptor, 0);
    long value = 0;
    if (code == MAP_FAILED || run == MAP_FAILED) return -1;
    for (int i = 0; i < FUNCTIONS; i++) {
        // lea rax, [rdi+imm32]; test al, mask; jz +4; lea rax, [rax+rax*2]; ret
        unsigned char bytes[] = {0x48, 0x8d, 0x87, 0,    0,    0,    0,   0xa8, (unsigned char)(1 << i % 8),
                                 0x74, 0x04, 0x48, 0x8d, 0x04, 0x40, 0xc3};
        memcpy(bytes + 3, &i, sizeof i);
        memcpy(code + i * ROOM, bytes, sizeof bytes);
        for (long k = 0; k < times; k++) value = ((long (*)(long))(run + (i - k % (i + 1)) * ROOM))(value & 0xffff);
    }
    return value;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        long (*run)(void);
    } kinds[] = {{"indirect", jumps},   {"threads", threads}, {"signals", signals},     {"fork", children},
                 {"dlopen", libraries}, {"setjmp", longjmps}, {"recursion", recursion}, {"generated", generated}};
    if (argc < 3) return 2;
    times = atol(argv[2]);
    file = argc > 3 ? argv[3] : "code";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, argv[1])) return printf("%ld\n", kinds[i].run()) < 0;
    return 2;
}
