/* PAPI as a program uses it: counts, overflows, another process, more events than counters. Events are the arguments:
   instructions, branches, and others to count besides. Differences of two lengths of a loop do not depend on compilers.
 */
#include <papi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 1000000, SHORT = 1000, THRESHOLD = 100000, MOST = 16 };

__attribute__((noinline, aligned(64))) static void loop(long turns) { /* two instructions a turn, one a branch */
#ifdef __x86_64__
    asm volatile("1: dec %0; jnz 1b" : "+r"(turns));
#else
    asm volatile("1: subs %0, %0, #1; b.ne 1b" : "+r"(turns));
#endif
}

static void require(const char* what, int result) {
    if (result == PAPI_OK) return;
    printf("%s: %s\n", what, PAPI_strerror(result));
    exit(1);
}
#define DO(call) require(#call, call)

static int new_set(void) {
    int set = PAPI_NULL;
    DO(PAPI_create_eventset(&set));
    DO(PAPI_assign_eventset_component(set, 0));
    return set;
}

static void end_set(int set) {
    DO(PAPI_cleanup_eventset(set));
    DO(PAPI_destroy_eventset(&set));
}

static void reads(char** events) {
    long long at[3][2];
    int set = new_set();
    for (int one = 0; one < 2; one++) DO(PAPI_add_named_event(set, events[one]));
    DO(PAPI_start(set));
    for (int turn = 0; turn < 2; turn++) { /* what is done for the first time takes longer */
        DO(PAPI_read(set, at[0]));
        loop(SHORT);
        DO(PAPI_read(set, at[1]));
        loop(LONG);
        DO(PAPI_read(set, at[2]));
    }
    DO(PAPI_stop(set, NULL));
    printf("longer by: %lld %lld\n", at[2][0] - 2 * at[1][0] + at[0][0], at[2][1] - 2 * at[1][1] + at[0][1]);
    end_set(set);
}

static int overflows, in_loop;
static void on_overflow(int set, void* address, long long vector, void* context) {
    overflows++;
    in_loop += (uintptr_t)address - (uintptr_t)loop < 64;
}

static void overflow(char** events) {
    long long count;
    int set = new_set(), code;
    DO(PAPI_event_name_to_code(events[0], &code));
    DO(PAPI_add_event(set, code));
    DO(PAPI_overflow(set, code, THRESHOLD, 0, on_overflow));
    DO(PAPI_start(set));
    loop(LONG);
    DO(PAPI_stop(set, &count));
    printf("overflows: %d, %lld due, %d in the loop\n", overflows, count / THRESHOLD, in_loop);
    DO(PAPI_overflow(set, code, 0, 0, on_overflow));
    end_set(set);
}

static long long of_another(char** events, long turns) {
    long long count;
    int set = new_set();
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        loop(turns);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    DO(PAPI_attach(set, child));
    DO(PAPI_add_named_event(set, events[0]));
    DO(PAPI_start(set));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, NULL, 0);
    DO(PAPI_stop(set, &count));
    ptrace(PTRACE_KILL, child, 0, 0);
    waitpid(child, NULL, 0);
    end_set(set);
    return count;
}

static void multiplexed(char** events, int count) {
    long long counts[MOST];
    int set = new_set();
    DO(PAPI_multiplex_init());
    DO(PAPI_set_multiplex(set));
    for (int one = 0; one < count; one++) DO(PAPI_add_named_event(set, events[one]));
    DO(PAPI_start(set));
    for (int turn = 0; turn < 100; turn++) loop(LONG);
    DO(PAPI_stop(set, counts));
    printf("multiplexed: %.4f %.4f\n", counts[0] / (200.0 * LONG), counts[1] / (100.0 * LONG));
    end_set(set);
}

int main(int count, char** arguments) {
    char** events = arguments + 1;
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) return 2;
    reads(events);
    overflow(events);
    long long longer = of_another(events, LONG);
    printf("of another: %lld\n", longer - of_another(events, SHORT));
    multiplexed(events, count - 1);
    long long before = PAPI_get_real_cyc();
    loop(LONG);
    printf("time passes: %d\n", PAPI_get_real_cyc() > before);
    return 0;
}
