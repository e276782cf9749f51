/* What threads and processes may expect of each other, as checks that print "ok" or "FAILED" with their name. Run by
   test_thread_checks.py on both ISAs; it must pass on a real Linux, too. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

static void check(const char *name, int holds) {
    printf("%s %s\n", holds ? "ok" : "FAILED", name);
    failures += !holds;
}

static long futex(void *word, int operation, unsigned value, const void *timeout, void *other, unsigned last) {
    return syscall(SYS_futex, word, operation, value, timeout, other, last);
}

/* ---- threads */

static __thread int own = 7;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int counter, turn;
static pid_t tids[4];

static void *count(void *argument) {
    long number = (long)argument;
    own += number;
    tids[number] = gettid();
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return (void *)(long)(own * 10 + (getpid() != tids[number]));
}

static void *take_turns(void *argument) {
    long number = (long)argument;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 4 != number)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void threads(void) {
    pthread_t thread[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, count, (void *)i);
    int right = 1;
    for (long i = 0; i < 4; i++) {
        void *result;
        pthread_join(thread[i], &result);
        right &= (long)result == (7 + i) * 10 + 1;
    }
    check("each thread has its own thread-local storage and tid", right && own == 7);
    check("a mutex keeps a counter right", counter == 4000);
    check("tids differ", tids[0] != tids[1] && tids[1] != tids[2] && tids[2] != tids[3]);
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, take_turns, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    check("threads take turns by a condition", turn == 80);
}

static pthread_barrier_t barrier;
static int passed;

static void *pass_barrier(void *argument) {
    for (int i = 0; i < 5; i++) {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            passed++;
    }
    return argument;
}

static void *timed(void *argument) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&mutex);
    int result = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return (void *)(long)result;
}

static void *detached(void *argument) {
    sem_post(argument);
    return NULL;
}

static void *cancelled(void *argument) {
    for (;;)
        pause();
    return argument;
}

static void more_threads(void) {
    pthread_t thread[3];
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, pass_barrier, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    check("a barrier lets all pass, five times", passed == 5);
    void *result;
    pthread_create(&thread[0], NULL, timed, NULL);
    pthread_join(thread[0], &result);
    check("a condition that nobody signals times out", (long)result == ETIMEDOUT);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread[0], &attributes, detached, &semaphore);
    while (sem_wait(&semaphore) != 0)
        ;
    check("a detached thread posts a semaphore", 1);
    pthread_create(&thread[0], NULL, cancelled, NULL);
    pthread_cancel(thread[0]);
    pthread_join(thread[0], &result);
    check("a thread that sleeps is cancelled", result == PTHREAD_CANCELED);
}

/* ---- robust and priority-inheritance mutexes */

static void *die_with_lock(void *argument) {
    pthread_mutex_lock(argument);
    return NULL;
}

static void *lock_twice(void *argument) {
    pthread_mutex_lock(argument);
    counter++;
    pthread_mutex_unlock(argument);
    return NULL;
}

static void owned_mutexes(int protocol, const char *name) {
    char text[100];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_t owned;
    pthread_mutex_init(&owned, &attributes);
    pthread_t thread[3];
    pthread_create(&thread[0], NULL, die_with_lock, &owned);
    pthread_join(thread[0], NULL);
    snprintf(text, sizeof text, "the owner of a robust mutex has died (%s)", name);
    check(text, pthread_mutex_lock(&owned) == EOWNERDEAD);
    snprintf(text, sizeof text, "... it can be made consistent (%s)", name);
    check(text, pthread_mutex_consistent(&owned) == 0);
    counter = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, lock_twice, &owned);
    usleep(200000);
    snprintf(text, sizeof text, "others wait for it (%s)", name);
    check(text, counter == 0);
    pthread_mutex_unlock(&owned);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    snprintf(text, sizeof text, "... and get it one after the other (%s)", name);
    check(text, counter == 3);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    pthread_create(&thread[0], NULL, die_with_lock, &owned);
    pthread_join(thread[0], NULL);
    snprintf(text, sizeof text, "... and its next owner may die, too (%s)", name);
    check(text, pthread_mutex_timedlock(&owned, &soon) == EOWNERDEAD);
}

/* ---- futex */

static int word, second;

static void *wait_for_bit(void *bit) {
    return (void *)futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, (unsigned)(long)bit);
}

static void futexes(void) {
    pthread_t thread[4];
    struct timespec zero = {0, 0}, invalid = {0, 1000000000};
    check("FUTEX_WAIT with another value", futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0) == -1 && errno == EAGAIN);
    check("FUTEX_WAIT times out", futex(&word, FUTEX_WAIT, 0, &zero, NULL, 0) == -1 && errno == ETIMEDOUT);
    check("... with no such time", futex(&word, FUTEX_WAIT, 0, &invalid, NULL, 0) == -1 && errno == EINVAL);
    check("a futex that is not aligned", futex((char *)&word + 1, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINVAL);
    check("a futex that is not there", futex((void *)16, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EFAULT);
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, wait_for_bit, (void *)(1L << i));
    usleep(200000);
    check("FUTEX_WAKE_BITSET wakes whom it means", futex(&word, FUTEX_WAKE_BITSET, 9, NULL, NULL, 4) == 1);
    check("FUTEX_CMP_REQUEUE compares", futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)1, &second, 5) == -1 && errno == EAGAIN);
    check("FUTEX_CMP_REQUEUE wakes one and moves one", futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)1, &second, 0) == 2);
    check("... the one that was moved waits there", futex(&second, FUTEX_WAKE, 9, NULL, NULL, 0) == 1);
    int change = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0);
    check("FUTEX_WAKE_OP wakes at both", futex(&second, FUTEX_WAKE_OP, 1, (void *)1, &word, change) == 1 && word == 3);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    word = 0;
}

/* ---- processes */

static int status_of(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static int in_child(void *argument) {
    *(int *)argument = getpid() != getppid();
    return 5;
}

static void processes(void) {
    static char stack[65536] __attribute__((aligned(16)));
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        while (futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINTR)
            ;
        shared[1] = 1;
        _exit(3);
    }
    usleep(200000);
    check("a futex in shared memory wakes another process", futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
    check("it exits", status_of(child) == 3 << 8 && shared[1] == 1);

    int flag = 0;
    child = clone(in_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &flag);
    check("a vfork child writes its parent's memory", flag == 1 && status_of(child) == 5 << 8);
    flag = 0;
    child = clone(in_child, stack + sizeof stack, CLONE_VM, &flag);
    check("a clone without a signal is not waited for", waitpid(child, NULL, 0) == -1 && errno == ECHILD);
    check("... but with __WCLONE", waitpid(child, &flag, __WCLONE) == child && flag == 5 << 8);

    struct clone_args arguments = {.exit_signal = SIGCHLD, .flags = CLONE_PARENT_SETTID, .parent_tid = (uintptr_t)&flag};
    child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(9);
    if (child < 0)  /* qemu-user has none */
        child = flag = fork() ?: (_exit(9), 0);
    check("clone3 forks and writes the tid", flag == child && status_of(child) == 9 << 8);

    siginfo_t info;
    child = fork();
    if (child == 0)
        _exit(11);
    memset(&info, 0, sizeof info);
    check("waitid with WNOWAIT", waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == child);
    check("... tells how it ended", info.si_code == CLD_EXITED && info.si_status == 11 && info.si_signo == SIGCHLD);
    check("... and it can be waited for again", status_of(child) == 11 << 8);
    check("nobody is left", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    check("waitid needs to know for what", waitid(P_ALL, 0, &info, WNOHANG) == -1 && errno == EINVAL);

    int gate[2];
    pipe(gate);
    child = fork();
    if (child == 0) {
        char byte;
        read(gate[0], &byte, 1);
        kill(getpid(), SIGKILL);
    }
    memset(&info, 1, sizeof info);
    check("waitid with WNOHANG", waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
    check("waitpid with WNOHANG", waitpid(child, NULL, WNOHANG) == 0);
    write(gate[1], "", 1);
    struct rusage usage;
    int status;
    check("wait4 tells the signal", wait4(child, &status, 0, &usage) == child && status == SIGKILL);
    check("... and usage", usage.ru_minflt > 0 && usage.ru_maxrss > 0);
}

static void groups(void) {
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        _exit(getpgrp() == getpid() && getpgid(getppid()) != getpgrp() ? 0 : 1);
    }
    check("a child begins a process group", status_of(child) == 0);
    int gate[2];
    pipe(gate);
    child = fork();
    if (child == 0) {
        char byte;
        read(gate[0], &byte, 1);
        _exit(getpgrp() == getpid() ? 0 : 1);
    }
    check("a parent puts its child into a group", setpgid(child, child) == 0 && getpgid(child) == child);
    pid_t other = fork();
    if (other == 0)
        _exit(setpgid(0, child) == 0 && getpgrp() == child && getsid(0) == getsid(getppid()) ? 0 : 1);
    check("another child joins that group", status_of(other) == 0);
    check("nobody is waited for in a group without children", waitpid(-other, NULL, 0) == -1 && errno == ECHILD);
    write(gate[1], "", 1);
    int status;
    check("a child of a group is waited for", waitpid(-child, &status, 0) == child && status == 0);
    check("a group that does not exist", setpgid(0, child) == -1 && errno == EPERM);
    check("a process that does not exist", setpgid(child, 0) == -1 && errno == ESRCH);
    check("... has no group", getpgid(child) == -1 && errno == ESRCH);
    child = fork();
    if (child == 0) {
        int began = setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid();
        _exit(began && setsid() == -1 && errno == EPERM && setpgid(0, 0) == -1 && errno == EPERM ? 0 : 1);
    }
    check("a child begins a session, once", status_of(child) == 0);
}

static void orphans(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int line[2];
    pipe(line);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            char byte;
            while (getppid() != 1 && read(line[0], &byte, 0) == 0 && byte != 'x')
                if (read(line[0], &byte, 1) == 1)
                    _exit(21);
        }
        _exit(20);
    }
    check("a child has a child", status_of(child) == 20 << 8);
    write(line[1], "x", 1);
    int status;
    check("a subreaper waits for it", waitpid(-1, &status, 0) > 0 && status == 21 << 8);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    child = fork();
    if (child == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            write(line[1], "y", 1);
            for (;;)
                pause();
        }
        char byte;
        read(line[0], &byte, 1);
        close(line[1]);
        _exit(parent == getpid() ? 22 : 23);
    }
    close(line[1]);
    check("a parent ends", status_of(child) == 22 << 8);
    char byte;
    check("... and its child with it", read(line[0], &byte, 1) == 0);
}

static void *run_program(void *argument) {
    char *const arguments[] = {"thread_checks", argument, NULL};
    execv("/proc/self/exe", arguments);
    return NULL;
}

static void *leave(void *argument) {
    usleep(200000);
    exit((int)(long)argument);
}

static void programs(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        char number[20];
        snprintf(number, sizeof number, "%d", getpid());
        pthread_t thread;
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, cancelled, NULL);
        pthread_create(&thread, NULL, run_program, number);
        pause();
    }
    check("a thread's program takes the place of all", status_of(child) == 33 << 8);
    child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, leave, (void *)44L);
        pthread_exit(NULL);
    }
    check("a process outlives its main thread", status_of(child) == 44 << 8);
    char *const arguments[] = {"thread_checks", "spawned", NULL};
    pid_t spawned;
    char *const environment[] = {NULL};
    check("posix_spawn", posix_spawn(&spawned, path, NULL, NULL, arguments, environment) == 0);
    check("... runs another program", status_of(spawned) == 34 << 8);
    check("... or says why not", posix_spawn(&spawned, "/nowhere", NULL, NULL, arguments, environment) == ENOENT);
}

static int count_tasks(void) {
    int found = 0;
    DIR *directory = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        found += entry->d_name[0] != '.';
    closedir(directory);
    return found;
}

static char state_of(pid_t tid) {
    char path[50], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    FILE *file = fopen(path, "r");
    if (file != NULL)
        fscanf(file, "%*d (%*[^)]) %c", &state), fclose(file);
    return state;
}

static void *sleep_on(void *tid) {
    *(pid_t *)tid = gettid();
    for (;;)
        pause();
    return NULL;
}

static void process_files(void) {
    pthread_t thread;
    pid_t volatile tid = 0;
    int before = count_tasks();
    pthread_create(&thread, NULL, sleep_on, (void *)&tid);
    usleep(200000);
    check("/proc/self/task has a directory for each thread", before == 1 && count_tasks() == 2);
    check("a thread that sleeps says so", state_of(tid) == 'S' && state_of(getpid()) == 'R');
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    usleep(200000);
    check("... and has no directory when it has ended", count_tasks() == 1);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    int status;
    check("a stopped child is told", waitpid(child, &status, WUNTRACED) == child && status == (SIGSTOP << 8 | 0x7f));
    check("... once", waitpid(child, &status, WUNTRACED | WNOHANG) == 0 && state_of(child) == 'T');
    kill(child, SIGCONT);
    check("a child that goes on is told", waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    kill(child, SIGSEGV);
    check("a fatal signal without a core file", status_of(child) == SIGSEGV);
}

static void *go_round(void *argument) {
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < 40; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((i * 3 + (long)argument) % cpus, &one);
        sched_setaffinity(0, sizeof one, &one);
        if (!CPU_ISSET(sched_getcpu(), &one))
            return (void *)1;
    }
    return NULL;
}

static void affinity(void) {
    pthread_t thread[4];
    long wrong = 0;
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, go_round, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(thread[i], &result);
        wrong += (long)result;
    }
    check("threads are on the CPU that they ask for", wrong == 0);
}

static void barriers(void) {
    int known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (known < 0)  /* qemu-user on a kernel without */
        return;
    check("membarrier of a private memory needs a registration",
          syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == -1 && errno == EPERM);
    check("it registers", syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
    check("it is passed", syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "spawned") == 0)
        return 34;
    if (count > 1)
        return atoi(arguments[1]) == getpid() && getpid() == gettid() ? 33 : 1;
    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(50);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    threads();
    more_threads();
    owned_mutexes(PTHREAD_PRIO_NONE, "plain");
    owned_mutexes(PTHREAD_PRIO_INHERIT, "inheriting");
    futexes();
    processes();
    groups();
    orphans();
    programs(arguments[0]);
    process_files();
    affinity();
    barriers();
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
