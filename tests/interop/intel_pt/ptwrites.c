// Writes numbers by PTWRITE, in each of its forms, among branches of all kinds, a page that comes late, a fault that a
// handler mends, and threads. Each write says in its upper half which thread it is of, and in its lower one which of
// its writes; those of 32 bits say the lower half alone.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 3, WRITES = 500 };

static uint64_t global[4];
static uint64_t* guarded;
static volatile int mended;

static void mend(int signal, siginfo_t* info, void* context) {
    if (signal != SIGSEGV || info->si_addr != guarded || mended++) abort();
    mprotect(guarded, 4096, PROT_READ);
}

__attribute__((noinline)) static void wide(uint64_t value) { __asm__ volatile("ptwriteq %0" : : "r"(value)); }
__attribute__((noinline)) static void narrow(uint64_t value) { __asm__ volatile("ptwritel %k0" : : "r"(value)); }
__attribute__((noinline)) static void in_memory(uint64_t value) {
    uint64_t words[3] = {0, 0, value};
    __asm__ volatile("ptwriteq (%0,%1,8)" : : "r"(words), "r"(2L), "m"(words));
}
__attribute__((noinline)) static void half_of_memory(uint64_t value) {
    __asm__ volatile("ptwritel %0" : : "m"(*(uint32_t*)&value));
}
__attribute__((noinline)) static void in_thread(uint64_t value) {
    static _Thread_local volatile uint64_t own;
    own = value;
    __asm__ volatile("ptwriteq %%fs:%0" : : "m"(*(uint64_t*)((char*)&own - (char*)__builtin_thread_pointer())));
}
static void (*const ways[])(uint64_t) = {wide, narrow, in_memory, half_of_memory, in_thread};

static void* work(void* argument) {
    const uint64_t thread = (uint64_t)argument << 32;
    for (uint32_t i = 0; i < WRITES; i++) {
        if (i % 3)
            ways[i % 5](thread | i);
        else
            wide(thread | i);
    }
    return NULL;
}

int main(void) {
    work((void*)0);
    global[1] = (uint64_t)1 << 40;
    __asm__ volatile("ptwriteq %0" : : "m"(global[1]));  // by RIP
    uint64_t* late = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("ptwriteq %0" : : "m"(*late));
    guarded = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *guarded = (uint64_t)2 << 40;
    mprotect(guarded, 4096, PROT_NONE);
    struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    __asm__ volatile("ptwriteq %0" : : "m"(*guarded));
    if (mended != 1) return 1;
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void*)(i + 1))) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
