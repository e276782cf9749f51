/* Calls that stand alone: priorities of input and output, protection keys, the clock's adjustment, many messages. */
#include "show.h"
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>

#ifdef __x86_64__
enum { IOPRIO_SET = 251, IOPRIO_GET = 252 };
#else
enum { IOPRIO_SET = 30, IOPRIO_GET = 31 };
#endif

static long get(int which, int who) { return syscall(IOPRIO_GET, which, who); }
static long set(int which, int who, int priority) { return syscall(IOPRIO_SET, which, who, priority); }

static void priorities(void) {
    SHOW(get(1, 0));
    SHOW(set(1, 0, 2 << 13 | 3));
    SHOW(get(1, 0));
    SHOW(get(1, getpid()) == (2 << 13 | 3));
    pid_t child = fork();
    if (!child) {
        SHOW(get(1, 0));
        SHOW(set(1, 0, 1 << 13 | 5));
        SHOW(get(1, 0));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    SHOW(set(1, 0, 3 << 13));
    SHOW(get(1, 0));
    SHOW(set(1, 0, 5));
    SHOW(set(1, 0, 4 << 13));
    SHOW(set(9, 0, 2 << 13));
    SHOW(get(9, 0));
    SHOW(get(1, 4194000));
    SHOW(set(1, 0, 0));
}

static void keys(void) {
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(syscall(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_WRITE, -1));
    page[0] = 1;
    SHOW(syscall(SYS_pkey_alloc, 1, 0));
}

static void clocks(void) {
    struct timex now = {0};
    SHOW(adjtimex(&now) >= 0);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    SHOW(real.tv_sec - now.time.tv_sec);
    SHOW(now.tick > 0);
    SHOW(syscall(SYS_clock_adjtime, 0, &now) >= 0);
    SHOW(syscall(SYS_clock_adjtime, 99, &now));
    SHOW(adjtimex(NULL));
}

static void messages(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    for (int i = 0; i < 5; i++) send(pair[0], "message", i + 1, 0);
    static char data[8][16];
    struct iovec vectors[8];
    struct mmsghdr headers[8] = {0};
    for (int i = 0; i < 8; i++) {
        vectors[i] = (struct iovec){data[i], 16};
        headers[i].msg_hdr.msg_iov = &vectors[i], headers[i].msg_hdr.msg_iovlen = 1;
    }
    struct timespec none = {0}, some = {5, 0}, invalid = {0, -1};
    SHOW(recvmmsg(pair[1], headers, 8, 0, &none));
    SHOW(recvmmsg(pair[1], headers, 2, 0, &some));
    SHOW(headers[0].msg_len * 10 + headers[1].msg_len);
    SHOW(some.tv_sec >= 4);
    SHOW(recvmmsg(pair[1], headers, 8, MSG_DONTWAIT, &some));
    SHOW(recvmmsg(pair[1], headers, 8, MSG_DONTWAIT, &some));
    SHOW(recvmmsg(pair[1], headers, 8, MSG_DONTWAIT, &invalid));
}

static void on_signal(int signal) {
    stack_t now;
    sigaltstack(NULL, &now);
    printf("in the handler: %x %d\n", now.ss_flags, now.ss_size > 0);
}

static void stacks(void) {
    static char memory[1 << 16];
    stack_t own = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = 1u << 31 /* SS_AUTODISARM */}, now;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    SHOW(sigaltstack(&own, NULL));
    raise(SIGUSR1);
    SHOW(sigaltstack(NULL, &now));
    printf("%x %d\n", now.ss_flags, now.ss_sp == memory);
    own.ss_flags = 1u << 30;
    SHOW(sigaltstack(&own, NULL));
    own.ss_flags = SS_DISABLE;
    SHOW(sigaltstack(&own, &now));
    printf("%x\n", now.ss_flags);
}

int main(void) {
    stacks();
    priorities();
    keys();
    clocks();
    messages();
    return 0;
}
