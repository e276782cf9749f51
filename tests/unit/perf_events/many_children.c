// Children that inherit 100 events each, until there is no room for another one's; twice. Then threads, which inherit
// 100 more.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 100 };

static int open_events(int inherit_thread) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_DUMMY};
    attr.inherit = attr.inherit_stat = 1;  // stat: else a child may end with what was opened, and leave its copies
    attr.inherit_thread = inherit_thread;
    int opened = 0;
    for (int i = 0; i < EVENTS; i++) opened += syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0;
    return opened;
}

// They stay until all that can be made are there.
static void fork_all(void) {
    int gate[2], children = 0, pid;
    pipe(gate);
    while ((pid = fork()) > 0) children++;
    int error = errno;
    if (pid == 0) {
        char byte;
        close(gate[1]);
        read(gate[0], &byte, 1);
        _exit(0);
    }
    close(gate[0]), close(gate[1]);
    while (wait(NULL) > 0) {
    }
    printf("%d children, then errno %d\n", children, error);
    fflush(stdout);
}

static void* wait_there(void* unused) {
    pause();
    return unused;
}

int main(void) {
    printf("%d events\n", open_events(0));
    fflush(stdout);
    fork_all();
    fork_all();
    printf("%d events of threads\n", open_events(1));
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    int threads = 0, error;
    pthread_t thread;
    while (!(error = pthread_create(&thread, &small, wait_there, NULL))) threads++;
    printf("%d threads, then error %d\n", threads, error);
    fflush(stdout);
    fork_all();
    _exit(0);
}
