// Functions that are traced alone, in a parent, its child and a thread; and one of a library that comes later.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) uint64_t inner(uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += i ^ count;
    return sum;
}

__attribute__((noinline)) uint64_t outer(uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += inner(i);
    return sum;
}

static void* thread(void* argument) {
    *(uint64_t*)argument = outer(20);
    return NULL;
}

int main(void) {
    uint64_t sum = outer(10), of_thread = 0;
    pthread_t other;
    pthread_create(&other, NULL, thread, &of_thread);
    pthread_join(other, NULL);
    fflush(NULL);
    if (fork() == 0) return outer(15) == 0;
    wait(NULL);
    void* library = dlopen("libm.so.6", RTLD_NOW);
    if (!library) return 1;
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    double total = 0;
    for (int i = 0; i < 10; i++) total += cosine(i);
    printf("%d %d\n", (int)(sum + of_thread), (int)total);
    return 0;
}
