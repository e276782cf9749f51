// Ways to leave a function, and to come back to one. At each call of `marker` it is known who has called whom: a comment
// says so, the innermost first, without marker and main. test_call_stacks.py reads the comments that begin with "//:".
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PLAIN __attribute__((noinline, noclone))

static volatile int sink;

PLAIN void marker(void) { sink++; }

PLAIN int recurse(int n) {
    int below = n ? recurse(n - 1) : 0;
    marker();
    return below + n;
}

// ---- longjmp: from below, and within one function

static jmp_buf environment;

PLAIN void leave(int n) {
    if (n == 0) {
        marker();
        longjmp(environment, 1);
    }
    leave(n - 1);
    sink++;
}

PLAIN void jumps(void) {
    if (setjmp(environment) == 0) leave(2);
    marker();
    sink++;
}

PLAIN void jumps_within(void) {
    volatile int times = 0;
    setjmp(environment);
    marker();
    if (times++ == 0) longjmp(environment, 1);
    sink++;
}

// ---- signals: on the task's stack and on an alternate one, which is left by siglongjmp

static sigjmp_buf interrupted;
static char alternate[65536];

PLAIN void in_handler(void) {
    marker();
    sink++;
}

static void returns(int signal) {
    in_handler();
    sink += signal;
}

static void jumps_out(int signal) {
    in_handler();
    siglongjmp(interrupted, signal);
}

PLAIN void interrupt(int flags, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    marker();
    sink++;
}

PLAIN void signals(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, 0);
    interrupt(0, returns);
    interrupt(SA_ONSTACK, returns);
    if (sigsetjmp(interrupted, 1) == 0) interrupt(SA_ONSTACK, jumps_out);
    marker();
    sink++;
}

// ---- coroutines, each of which goes on in the next one once

static ucontext_t first, contexts[2];
static char stacks[2][65536];

PLAIN void go(ucontext_t *from, ucontext_t *to) {
    swapcontext(from, to);
    marker();
    sink++;
}

PLAIN void within(int number) {
    marker();
    go(&contexts[number], &first);
    sink++;
}

static void coroutine(int number) {
    within(number);
    if (number == 0) go(&contexts[0], &contexts[1]);
    sink++;
}

PLAIN void coroutines(void) {
    for (int number = 0; number < 2; number++) {
        getcontext(&contexts[number]);
        contexts[number].uc_stack.ss_sp = stacks[number];
        contexts[number].uc_stack.ss_size = sizeof stacks[number];
        contexts[number].uc_link = &first;
        makecontext(&contexts[number], (void (*)(void))coroutine, 1, number);
    }
    for (int number = 0; number < 3; number++) go(&first, &contexts[number % 2]);
    marker();
    sink++;
}

// ---- tail calls, a call from the library, a large frame, a child, a thread

PLAIN int last(int n) {
    marker();
    return n + sink;
}
PLAIN int tail(int n) { return last(2 * n); }

PLAIN int tails(void) {
    int sum = tail(1);
    marker();
    return sum;
}

static int compare(const void *a, const void *b) {
    if (*(const int *)a == 7) marker();
    return *(const int *)a - *(const int *)b;
}

PLAIN void sorts(void) {
    int values[] = {7, 3};
    qsort(values, 2, sizeof *values, compare);
    sink += values[0];
}

PLAIN void large(size_t size) {
    volatile char *room = __builtin_alloca(size);
    room[0] = 1;
    recurse(0);
    marker();
    sink += room[0];
}

PLAIN void forks(void) {
    pid_t child = fork();
    if (child == 0) {
        marker();
        _exit(0);
    }
    waitpid(child, 0, 0);
    marker();
    sink++;
}

static void *thread(void *nothing) {
    recurse(0);
    jumps();
    return nothing;
}

PLAIN void threads(void) {
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    marker();
    sink++;
}

int main(int count, char **arguments) {
    //: recurse recurse recurse, recurse recurse, recurse
    recurse(2);
    //: leave leave leave jumps, jumps
    jumps();
    //: jumps_within, jumps_within
    jumps_within();
    //: in_handler returns interrupt signals, interrupt signals
    //: in_handler returns interrupt signals, interrupt signals
    //: in_handler jumps_out interrupt signals, signals
    signals();
    //: last tails, tails
    tails();
    //: compare sorts
    sorts();
    //: recurse large, large
    large(20000 * (size_t)count);
    //: within coroutine | go coroutines | within coroutine | go coroutines
    //: go within coroutine | go within coroutine | go coroutines, coroutines
    coroutines();
    //: forks, forks
    forks();
    //: recurse thread | leave leave leave jumps thread | jumps thread | threads
    threads();
    return arguments[0] == 0;
}
