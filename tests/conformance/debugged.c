/* What test_debuggers.py has strace, gdb and ltrace look at: recursion, a watched variable, a child, a thread. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int watched;
static volatile int finished;

static int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

static void change(int by) { watched += by; }

static void* other(void* argument) {
    finished = factorial(3);
    return argument;
}

static void handler(int number) {
    (void)number;
    write(1, "handled\n", 8);
}

int main(void) {
    int result = factorial(5);
    change(2);
    change(3);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        write(1, "child\n", 6);
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    write(1, "end\n", 4);
    return strlen("four") + result - 120 + watched - 5 + finished - 6;
}
