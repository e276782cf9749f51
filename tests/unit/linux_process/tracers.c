/* What a tracer hears and reaches of a program that goes on, ends, and has children. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int status;

static void show(const char *what, long result) {
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
}

static pid_t begin(void (*act)(void), long options) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        act();
        _exit(0);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, options);
    return child;
}

/* ---- a thread ends */

static void *end_at_once(void *nothing) { return nothing; }

static void make_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, end_at_once, NULL);
    pthread_join(thread, NULL);
    raise(SIGUSR1);
}

static void thread_ends(void) {
    siginfo_t info;
    unsigned long thread;
    pid_t child = begin(make_a_thread, PTRACE_O_TRACECLONE);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0); /* PTRACE_EVENT_CLONE */
    ptrace(PTRACE_GETEVENTMSG, child, 0, &thread);
    waitpid(thread, &status, __WALL);
    ptrace(PTRACE_CONT, thread, 0, 0);
    /* Who does not ask for ends does not wait for what has ended. */
    show("stops of a thread that ends", waitid(P_PID, thread, &info, WSTOPPED | __WALL));
    show("its end", waitid(P_PID, thread, &info, WEXITED | __WALL) ? -1 : info.si_pid == (pid_t)thread);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    show("behind it", WSTOPSIG(status) == SIGUSR1);
    ptrace(PTRACE_KILL, child, 0, 0);
    waitpid(child, &status, 0);
    show("stops of who was waited for", waitid(P_PID, child, &info, WSTOPPED));
}

/* ---- a child ends, and its parent does not want to know */

static void have_a_child(void) {
    pid_t child = fork();
    if (!child) _exit(0);
    show("its end", waitpid(child, NULL, 0));
    raise(SIGUSR1);
}

static void ignored(void) {
    signal(SIGCHLD, SIG_IGN);
    pid_t child = begin(have_a_child, 0);
    signal(SIGCHLD, SIG_DFL);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    show("the first signal is SIGUSR1", WSTOPSIG(status) == SIGUSR1); /* of one that is ignored it would hear, too */
    ptrace(PTRACE_KILL, child, 0, 0);
    waitpid(child, &status, 0);
}

static void nothing_more(void) {}

static void ignored_by_the_tracer(void) {
    signal(SIGCHLD, SIG_IGN);
    pid_t child = begin(nothing_more, 0);
    ptrace(PTRACE_CONT, child, 0, 0);
    show("a traced child is waited for", waitpid(child, &status, 0) == child);
    signal(SIGCHLD, SIG_DFL);
}

/* ---- memory */

static char *below;
static void have_a_stack(void) { raise(SIGUSR1); }

static void reaches(void) {
    char path[64];
    uint64_t word = 1;
    long page = sysconf(_SC_PAGESIZE);
    char *area = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(area, 64 * page);
    char *stack = mmap(area + 48 * page, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    below = stack - 4 * page;
    pid_t child = begin(have_a_stack, 0);
    sprintf(path, "/proc/%d/mem", child);
    int memory = open(path, O_RDWR);
    show("a read below a stack", pread(memory, &word, sizeof word, (long)below));
    show("what is there", word);
    show("a word below that", pread(memory, &word, sizeof word, (long)below - sizeof word));
    show("a write farther below", pwrite(memory, &word, sizeof word, (long)below - 3 * page));
    errno = 0;
    show("by ptrace", ptrace(PTRACE_PEEKDATA, child, below - 5 * page, 0));
    show("nowhere", pread(memory, &word, sizeof word, 4096));
    ptrace(PTRACE_KILL, child, 0, 0);
    waitpid(child, &status, 0);
}

int main(void) {
    thread_ends();
    ignored();
    ignored_by_the_tracer();
    reaches();
    return 0;
}
