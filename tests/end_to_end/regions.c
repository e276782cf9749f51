/* Functions of known length, called from threads, children and loops: what tests of regions count. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void work(void);              /* 3 instructions */
void pair(void);              /* calls `work`, then 3 instructions up to the entry of `other` */
void other(void);             /* 1 instruction */
long forker(void);            /* fork, as a system call of its own */
void countdown(long rounds);  /* calls itself so often */
void tail(long rounds);       /* jumps to its own entry so often */

#ifdef __aarch64__
__asm__(
    ".text\n.globl work, pair, other, forker, countdown, tail\n"
    ".type work, %function\n.type pair, %function\n.type other, %function\n"
    ".type forker, %function\n.type countdown, %function\n.type tail, %function\n"
    "work:   nop\n nop\n ret\n"
    "pair:   mov x9, x30\n bl work\n nop\n nop\n bl other\n mov x30, x9\n ret\n"
    "other:  ret\n"
    "forker: mov x8, #220\n mov x0, #17\n mov x1, #0\n mov x2, #0\n mov x3, #0\n mov x4, #0\n svc #0\n ret\n"
    "countdown: str x30, [sp, #-16]!\n cbz x0, 1f\n sub x0, x0, #1\n bl countdown\n 1: ldr x30, [sp], #16\n ret\n"
    "tail:   cbz x0, 1f\n sub x0, x0, #1\n b tail\n 1: nop\n ret\n");
#else
__asm__(
    ".text\n.globl work, pair, other, forker, countdown, tail\n"
    ".type work, @function\n.type pair, @function\n.type other, @function\n"
    ".type forker, @function\n.type countdown, @function\n.type tail, @function\n"
    "work:   nop\n nop\n ret\n"
    "pair:   call work\n nop\n nop\n call other\n ret\n"
    "other:  ret\n"
    "forker: mov $57, %eax\n syscall\n ret\n"
    "countdown: test %rdi, %rdi\n jz 1f\n dec %rdi\n call countdown\n 1: ret\n"
    "tail:   test %rdi, %rdi\n jz 1f\n dec %rdi\n jmp tail\n 1: ret\n"
    ".section .note.GNU-stack, \"\", @progbits\n.text\n");
#endif

static jmp_buf landing;

__attribute__((noinline)) void jumping(void) {
    work();
    longjmp(landing, 1);
}

static void *thread(void *calls) {
    for (long n = (long)calls; n > 0; n--) work();
    return NULL;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    volatile long n = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(what, "calls")) thread((void *)n);
    if (!strcmp(what, "pair"))
        for (; n > 0; n--) pair();
    if (!strcmp(what, "countdown")) countdown(n);
    if (!strcmp(what, "tail")) tail(n);
    if (!strcmp(what, "threads")) {
        pthread_t threads[2];
        for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, (void *)(n * (i + 1)));
        thread((void *)5);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    }
    if (!strcmp(what, "fork")) {
        if (forker() == 0) _exit(0);
        wait(NULL);
    }
    if (!strcmp(what, "jump")) {
        if (!setjmp(landing)) jumping();
        while (n > 0) n--;
    }
    if (!strcmp(what, "exec")) execl(argv[0], argv[0], "calls", argv[2], NULL);
    return 0;
}
