// Signals of a process whose thread that is to act on them cannot look, and ends: others see them pending, execve keeps
// them, and the periodic timer that waits for one of them goes on.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct timespec none_at_all, soon = {0, 20 * 1000 * 1000}, late = {2, 0};
static sigset_t all;

static void none(int signal) { (void)signal; }

static void* leave(void* unused) {
    (void)unused;
    struct itimerval every = {{0, 1000}, {0, 1000}};
    union sigval value = {.sival_int = 7};
    sigset_t pending;
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    nanosleep(&soon, NULL);  // until the main thread waits for its child
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 2; i++) sigqueue(getpid(), SIGRTMIN, value);
    setitimer(ITIMER_REAL, &every, NULL);
    nanosleep(&soon, NULL);
    sigpending(&pending);
    printf("pending: %d %d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGALRM),
           sigismember(&pending, SIGRTMIN));
    fflush(stdout);
    execl("/proc/self/exe", "program", "executed", NULL);
    return NULL;
}

static void take(const char* what, int signal) {
    sigset_t one;
    siginfo_t info = {0};
    sigemptyset(&one);
    sigaddset(&one, signal);
    int taken = sigtimedwait(&one, &info, signal == SIGALRM ? &late : &none_at_all);
    printf("%s: %d %d\n", what, taken == signal, taken > 0 ? info.si_value.sival_int : 0);
}

static int wait_for_the_end(void* unused) {
    (void)unused;
    while (1) nanosleep(&late, NULL);
}

// Another process with the same handlers has its own pending signals.
static void have_handlers_in_common(void) {
    static char stack[1 << 16] __attribute__((aligned(16)));
    sigset_t pending;
    int status;
    sigprocmask(SIG_BLOCK, &all, NULL);
    pid_t child = clone(wait_for_the_end, stack + sizeof stack, CLONE_VM | CLONE_SIGHAND | SIGCHLD, NULL);
    kill(child, SIGUSR1);
    sigpending(&pending);
    printf("another's: %d\n", sigismember(&pending, SIGUSR1));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("it ends by %d\n", WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &all, NULL);
}

int main(int count, char** arguments) {
    sigemptyset(&all);
    sigaddset(&all, SIGUSR1);
    sigaddset(&all, SIGALRM);
    sigaddset(&all, SIGRTMIN);
    if (count > 1) {
        take("SIGUSR1", SIGUSR1);
        take("again", SIGUSR1);
        for (int i = 0; i < 3; i++) take("SIGRTMIN", SIGRTMIN);
        for (int i = 0; i < 3; i++) take("SIGALRM", SIGALRM);
        return 0;
    }
    pthread_t thread;
    signal(SIGUSR1, none);
    signal(SIGALRM, none);
    signal(SIGRTMIN, none);
    have_handlers_in_common();
    pthread_create(&thread, NULL, leave, NULL);
    if (vfork() == 0) {        // its parent hears no signal until it has ended
        close(STDOUT_FILENO);  // of whoever reads what is printed
        close(STDERR_FILENO);
        nanosleep(&late, NULL);
        _exit(0);
    }
    puts("not reached");
}
