// What Linux does for programs, so many times as the second argument says: see system.py.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void getppids(long times) {
    while (times--) syscall(SYS_getppid);
}

static void writes(long times) {
    int file = open("/dev/null", O_WRONLY);
    while (times--) write(file, "x", 1);
}

// Two processes hand a byte to and fro: two switches each time.
static void pipes(long times) {
    int to[2], from[2];
    char byte = 0;
    if (pipe(to) || pipe(from)) exit(1);
    if (!fork()) {
        for (long i = 0; i < times; i++) {
            read(to[0], &byte, 1);
            write(from[1], &byte, 1);
        }
        _exit(0);
    }
    for (long i = 0; i < times; i++) {
        write(to[1], &byte, 1);
        read(from[0], &byte, 1);
    }
    wait(NULL);
}

static void switches(long times) {
    pid_t child = fork();
    for (long i = 0; i < times; i++) sched_yield();
    if (!child) _exit(0);
    wait(NULL);
}

static int turn;

static void hand_over(int from, long times) {
    for (long i = 0; i < times; i++) {
        int now;
        while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != from) syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, 0);
        __atomic_store_n(&turn, !from, __ATOMIC_RELEASE);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1);
    }
}

static void *second(void *times) {
    hand_over(1, (long)times);
    return NULL;
}

// Two threads hand a word to and fro: two hand-offs each time.
static void futexes(long times) {
    pthread_t other;
    pthread_create(&other, NULL, second, (void *)times);
    hand_over(0, times);
    pthread_join(other, NULL);
}

static void forks(long times) {
    size_t size = 100 << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, size);
    while (times--) {
        if (!fork()) _exit(0);
        wait(NULL);
    }
}

static void mappings(long times) {
    enum { MAPPINGS = 1000 };
    char *made[MAPPINGS];
    while (times--) {
        for (int i = 0; i < MAPPINGS; i++)  // neighbours differ, so that they stay apart
            made[i] = mmap(NULL, 8192, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < MAPPINGS; i++) munmap(made[i], 8192);
    }
}

static const struct {
    const char *name;
    void (*run)(long times);
} ROWS[] = {
    {"getppid", getppids}, {"write", writes}, {"pipe", pipes}, {"switch", switches},
    {"futex", futexes},    {"fork", forks},   {"mappings", mappings},
};

int main(int count, char **words) {
    for (size_t i = 0; count == 3 && i < sizeof ROWS / sizeof *ROWS; i++)
        if (!strcmp(ROWS[i].name, words[1])) {
            ROWS[i].run(atol(words[2]));
            return 0;
        }
    return 2;
}
