// A task's life as tracepoints tell it: signals, names, a timer, a child. Each step ends before the next begins.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void handle(int signal) { (void)signal; }

int main(void) {
    struct sigaction action = {.sa_handler = handle};
    sigset_t blocked;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    raise(SIGUSR1);
    kill(getpid(), SIGCHLD);  // ignored
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);  // pending already
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    prctl(PR_SET_NAME, "renamed");

    struct itimerval once = {.it_value = {0, 500}};
    setitimer(ITIMER_REAL, &once, NULL);
    pause();

    pid_t child = fork();
    if (child == 0) {
        usleep(300);
        _exit(3);
    }
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    usleep(300);
    kill(child, SIGTERM);
    waitpid(-1, NULL, 0);
    return 0;
}
