// Signals of a process whose thread that is to act on them cannot look, and ends: others see them pending, execve keeps
// them, and the periodic timer that waits for one of them goes on.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct timespec none_at_all, soon = {0, 20 * 1000 * 1000}, late = {2, 0};
static sigset_t both;

static void none(int signal) { (void)signal; }

static void* leave(void* unused) {
    (void)unused;
    struct itimerval every = {{0, 1000}, {0, 1000}};
    union sigval value = {.sival_int = 7};
    sigset_t pending;
    pthread_sigmask(SIG_BLOCK, &both, NULL);
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

int main(int count, char** arguments) {
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGRTMIN);
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
    pthread_create(&thread, NULL, leave, NULL);
    if (vfork() == 0) {        // its parent hears no signal until it has ended
        close(STDOUT_FILENO);  // of whoever reads what is printed
        close(STDERR_FILENO);
        nanosleep(&late, NULL);
        _exit(0);
    }
    puts("not reached");
}
