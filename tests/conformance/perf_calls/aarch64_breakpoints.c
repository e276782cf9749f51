// Hardware breakpoints that a tracer sets by NT_ARM_HW_BREAK and NT_ARM_HW_WATCH: what each order answers, what is read
// back, and each stop.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NT_PRSTATUS 1
#define BREAK 0x402
#define WATCH 0x403

struct slot {
    uint64_t address;
    uint32_t control, pad;
};
struct state {
    uint32_t info, pad;
    struct slot slots[16];
};

static volatile uint64_t watched[4] __attribute__((aligned(64)));
static uint64_t* shared;

__attribute__((noinline, noclone)) void called(void) { __asm__ volatile("" ::: "memory"); }

static uint32_t control(unsigned select, unsigned kind, unsigned enabled) {
    return select << 5 | kind << 3 | 2 << 1 | enabled;
}

static long set(pid_t child, int kind, const void* state, size_t size) {
    struct iovec vector = {(void*)state, size};
    return ptrace(PTRACE_SETREGSET, child, kind, &vector) ? -errno : (long)vector.iov_len;
}

static long get(pid_t child, int kind, struct state* state, size_t size) {
    struct iovec vector = {state, size};
    memset(state, 0x55, sizeof *state);
    return ptrace(PTRACE_GETREGSET, child, kind, &vector) ? -errno : (long)vector.iov_len;
}

static const char* answer(long result) {
    static char text[32];
    if (result < 0) return strerrorname_np(-result);
    snprintf(text, sizeof text, "%ld bytes", result);
    return text;
}

static void show(pid_t child, const char* what, int kind, int slots) {
    struct state state;
    long size = get(child, kind, &state, sizeof state);
    printf("%s: %s, info %x %x", what, answer(size), state.info, state.pad);
    for (int i = 0; i < slots; i++) {
        uint64_t address = state.slots[i].address, from = (uint64_t)watched;
        int near = address >= from && address < from + sizeof watched;
        printf(" [%s%lx %x %x]", near ? "+" : "", address - (near ? from : 0), state.slots[i].control,
               state.slots[i].pad);
    }
    printf("\n");
}

static long one(pid_t child, int kind, int number, uint64_t address, uint32_t control) {
    struct state state = {0};
    state.slots[number].address = address;
    state.slots[number].control = control;
    return set(child, kind, &state, 8 + 16 * (number + 1));
}

static pid_t start(void (*work)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        work();
        _exit(7);
    }
    waitpid(child, NULL, 0);
    return child;
}

static void work(void) {
    for (int i = 0; i < 2; i++) {
        watched[0] = i;
        (void)*(volatile uint32_t*)((char*)watched + 4);
        *(volatile uint8_t*)((char*)watched + 6) = 1;
        called();
        watched[1] = 1;
    }
}

static uint64_t pc_of(pid_t child) {
    uint64_t registers[34];
    struct iovec vector = {registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &vector);
    return registers[32];
}

// One way: what a hit says. `passes`: the breakpoint is taken away for one step, as a debugger does.
static void follow(pid_t child, const char* what, int kind, uint64_t address, uint32_t control, int passes) {
    int status = 0;
    printf("%s: set %s\n", what, answer(one(child, kind, 0, address, control)));
    uint64_t last = 0;
    for (int stops = 0; stops < 12; stops++) {
        if (ptrace(PTRACE_CONT, child, 0, 0) || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) break;
        siginfo_t info;
        memset(&info, 0, sizeof info);
        ptrace(PTRACE_GETSIGINFO, child, 0, &info);
        uint64_t pc = pc_of(child), at = (uint64_t)info.si_addr;
        printf("%s: signal %d code %d errno %d, %s%ld, where it was %d\n", what, info.si_signo, info.si_code,
               info.si_errno, at == pc ? "its PC " : "data ",
               at == pc ? (long)(pc == (uint64_t)called) : (long)(at - (uint64_t)watched), pc == last);
        last = pc;
        if (!passes && stops < 3) continue;
        one(child, kind, 0, address, control & ~1);
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
        ptrace(PTRACE_GETSIGINFO, child, 0, &info);
        printf("%s: stepped: signal %d code %d\n", what, info.si_signo, info.si_code);
        if (passes) one(child, kind, 0, address, control);
    }
    printf("%s: ended %d, status %x\n", what, WIFEXITED(status), status);
    if (!WIFEXITED(status)) kill(child, SIGKILL), waitpid(child, &status, 0);
}

static void stepped_into(void) {
    pid_t child = start(work);
    int status;
    siginfo_t info;
    one(child, BREAK, 0, (uint64_t)called, control(15, 0, 1));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    waitpid(child, &status, 0);
    ptrace(PTRACE_GETSIGINFO, child, 0, &info);
    printf("a step from a breakpoint that is there: code %d, still there %d\n", info.si_code,
           pc_of(child) == (uint64_t)called);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static void answers(void) {
    pid_t child = start(work);
    uint64_t data = (uint64_t)watched, code = (uint64_t)called;
    struct state state = {0};
    show(child, "nothing yet", BREAK, 2);
    show(child, "nothing yet", WATCH, 2);
    for (unsigned size = 0; size <= 32; size += 4) {
        long given = get(child, WATCH, &state, size);
        printf("get %u: %s\n", size, answer(given));
    }
    printf("get 7: %s\n", answer(get(child, WATCH, &state, 7)));
    printf("head alone: %s\n", answer(set(child, WATCH, &state, 8)));
    memset(&state, 0, sizeof state);
    printf("half an address: %s\n", answer(set(child, WATCH, &state, 12)));
    printf("an address alone: %s\n", answer(set(child, WATCH, &state, 16)));
    show(child, "an address of 0", WATCH, 2);
    printf("without the pad: %s\n", answer(set(child, WATCH, &state, 20)));
    printf("5 slots of data, all 0: %s\n", answer(set(child, WATCH, &state, 8 + 16 * 5)));
    show(child, "5 slots", WATCH, 5);
    printf("7 slots of code, all 0: %s\n", answer(set(child, BREAK, &state, 8 + 16 * 7)));
    show(child, "7 slots", BREAK, 7);
    printf("all slots: %s\n", answer(set(child, BREAK, &state, sizeof state)));
    printf("more: %s\n", answer(set(child, BREAK, &state, sizeof state + 16)));
    static const struct {
        const char* what;
        unsigned select, kind;
        uint64_t offset;
    } each[] = {
        {"8 bytes", 0xff, 3, 0},         {"4 bytes", 0x0f, 3, 0},       {"the upper 4", 0xf0, 3, 0},
        {"2 in the middle", 0x18, 3, 0}, {"1, stored", 0x40, 2, 0},     {"3, loaded", 0x07, 1, 0},
        {"two runs", 0x81, 3, 0},        {"no byte", 0, 3, 0},          {"kind 0", 0xff, 0, 0},
        {"8 bytes at +4", 0xff, 3, 4},   {"4 bytes at +4", 0x0f, 3, 4}, {"4 at +6", 0x0f, 3, 6},
        {"1 at +5", 0x01, 2, 5},         {"upper 4 at +4", 0xf0, 3, 4}, {"5 bytes", 0x1f, 2, 8},
        {"7 bytes at +1", 0x7f, 2, 9},
    };
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++) {
        long result = one(child, WATCH, 0, data + each[i].offset, control(each[i].select, each[i].kind, 1));
        printf("watch %s: %s\n", each[i].what, answer(result));
        show(child, "...", WATCH, 1);
        result = one(child, WATCH, 0, data + each[i].offset, control(each[i].select, each[i].kind, 0));
        printf("... disabled: %s\n", answer(result));
        show(child, "...", WATCH, 1);
    }
    printf("code: %s\n", answer(one(child, BREAK, 0, code, control(15, 0, 1))));
    printf("code, 1 byte: %s\n", answer(one(child, BREAK, 0, code, control(1, 0, 1))));
    printf("code, the upper 2: %s\n", answer(one(child, BREAK, 0, code & ~7ul, control(0xc, 0, 1))));
    printf("code, as data: %s\n", answer(one(child, BREAK, 0, code, control(15, 1, 1))));
    printf("code at 8: %s\n", answer(one(child, BREAK, 0, 8, control(15, 0, 1))));
    show(child, "code", BREAK, 1);
    printf("code at 10: %s\n", answer(one(child, BREAK, 0, 10, control(15, 0, 1))));
    show(child, "code", BREAK, 1);
    printf("the kernel's: %s\n", answer(one(child, WATCH, 0, 0xffff800000000000, control(15, 3, 1))));
    printf("the kernel's, disabled: %s\n", answer(one(child, WATCH, 0, 0xffff800000000000, control(15, 3, 0))));
    show(child, "the kernel's", WATCH, 1);
    printf("privilege 1: %s\n", answer(one(child, WATCH, 0, data, 15 << 5 | 3 << 3 | 1 << 1 | 1)));
    printf("other bits: %s\n", answer(one(child, WATCH, 0, data, 0xffffe000 | control(15, 3, 1))));
    show(child, "other bits", WATCH, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void execs(void) { execl("/proc/self/exe", "again", "exec", NULL); }

static void forks(void) {
    pid_t child = fork();
    if (!child) {
        watched[0] = 1;
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    *shared = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    raise(SIGSTOP);
}

static void lives(void) {
    int status;
    pid_t child = start(forks);
    one(child, WATCH, 0, (uint64_t)watched, control(0xff, 2, 1));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    while (WSTOPSIG(status) == SIGCHLD) {
        ptrace(PTRACE_CONT, child, 0, 0);
        waitpid(child, &status, 0);
    }
    printf("a child has none: it ended with %d, and its parent is at %d\n", (int)*shared, WSTOPSIG(status));
    show(child, "and its own", WATCH, 1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    child = start(execs);
    one(child, BREAK, 0, (uint64_t)called, control(15, 0, 1));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("execve: stopped %d\n", WIFSTOPPED(status));
    show(child, "behind it", BREAK, 1);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("ended %d\n", WIFEXITED(status));
}

int main(int argc, char** argv) {
    if (argc > 1) {
        called();
        return 0;
    }
    setvbuf(stdout, 0, _IOLBF, 0);
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t data = (uint64_t)watched;
    answers();
    follow(start(work), "writes of 8", WATCH, data, control(0xff, 2, 1), 1);
    follow(start(work), "reads", WATCH, data, control(0xff, 1, 1), 1);
    follow(start(work), "accesses of byte 6", WATCH, data, control(0x40, 3, 1), 1);
    follow(start(work), "the next word", WATCH, data + 8, control(0x01, 3, 1), 1);
    follow(start(work), "code", BREAK, (uint64_t)called, control(15, 0, 1), 1);
    follow(start(work), "data that nobody passes", WATCH, data, control(0xff, 2, 1), 0);
    follow(start(work), "code that nobody passes", BREAK, (uint64_t)called, control(15, 0, 1), 0);
    stepped_into();
    lives();
}
