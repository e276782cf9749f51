// Tasks that each work in a function of their own, and give the CPU away all the time: two threads, a child, and a
// handler of signals that comes to the first thread. What a task records of branches is in its own function, or in what
// all share.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 120, PASSES = 9 };

#define WORK(name)                                               \
    __attribute__((noinline)) static void* name(void* unused) {  \
        for (int round = 0; round < ROUNDS; round++) {           \
            for (volatile int pass = 0; pass < PASSES; pass++) { \
            }                                                    \
            if (round % 3 == 0) sched_yield();                   \
        }                                                        \
        return unused;                                           \
    }

WORK(work_of_main)
WORK(work_of_thread)
WORK(work_of_child)

__attribute__((noinline)) static void on_signal(int number) {
    for (volatile int pass = number; pass < number + PASSES; pass++) {
    }
}

int main(void) {
    pthread_t thread;
    signal(SIGUSR1, on_signal);
    if (pthread_create(&thread, NULL, work_of_thread, NULL)) return 1;
    pid_t child = fork();
    if (!child) {
        work_of_child(NULL);
        _exit(0);
    }
    for (int i = 0; i < 4; i++) {
        work_of_main(NULL);
        raise(SIGUSR1);
    }
    pthread_join(thread, NULL);
    int status;
    return waitpid(child, &status, 0) != child || status;
}
