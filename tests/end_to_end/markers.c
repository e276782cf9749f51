/* Regions that the program marks itself. The loops are assembly, so that their instructions are known:
 * two for each time round on both ISAs, and one before. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfemu_markers.h"

/* WORK is an assembly constant: 1 + 2 * times instructions, and no access to memory */
#if defined(__aarch64__)
#define WORK(times) "mov x9, #" #times "\n1: subs x9, x9, #1\nb.ne 1b\n"
#define CLOBBERED "x9", "cc"
#define ROUNDS "1: subs %0, %0, #1\nb.ne 1b\n"
#else
#define WORK(times) "mov $" #times ", %%ecx\n1: dec %%ecx\njnz 1b\n"
#define CLOBBERED "ecx", "cc"
#define ROUNDS "1: dec %0\njnz 1b\n"
#endif

#if defined(__aarch64__) /* 8 in the parent, 3 in the child */
#define FORK                                                                              \
    "mov x8, #220\nmov x0, #17\nmov x1, #0\nmov x2, #0\nmov x3, #0\nmov x4, #0\nsvc #0\n" \
    "cbnz x0, 2f\nmov x8, #93\nsvc #0\n2:\n"
#define FORK_CLOBBERED "x0", "x1", "x2", "x3", "x4", "x8", "memory"
#else /* 4 in the parent, 5 in the child */
#define FORK "mov $57, %%eax\nsyscall\ntest %%eax, %%eax\njnz 2f\nmov $60, %%eax\nxor %%edi, %%edi\nsyscall\n2:\n"
#define FORK_CLOBBERED "rax", "rcx", "rdi", "r11", "cc", "memory"
#endif
#define DO(times) __asm__ volatile(WORK(times)::: CLOBBERED)
#define MARKED(number, times) \
    perfemu_begin(number);    \
    DO(times);                \
    perfemu_end(number)

static void* thread(void* ignored) {
    MARKED(1, 50);
    return ignored;
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "twice")) {
        MARKED(0, 100);
        DO(1000);
        MARKED(3, 10);
    } else if (!strcmp(what, "nested")) { /* the first end ends it */
        perfemu_begin(0);
        MARKED(0, 100);
        DO(1000);
        perfemu_end(0);
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    } else if (!strncmp(what, "control",
                        7)) { /* with --control: control-short is 1,000 rounds less than control-long */
        const int orders = open("/dev/orders", O_WRONLY);
        long rounds = strcmp(what, "control-long") ? 100 : 1100;
        write(orders, "enable\n", 7);
        __asm__ volatile(ROUNDS : "+r"(rounds)::"cc");
        write(orders, "disable\n", 8);
        DO(5000);
    } else if (!strcmp(what, "fork")) { /* the child is inside, and ends there */
        perfemu_begin(0);
        __asm__ volatile(FORK ::: FORK_CLOBBERED);
        perfemu_end(0);
        wait(NULL);
    }
    return 0;
}
