/* What a tracer reads and writes of registers: those of each ISA. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int status;

static pid_t stopped(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(syscall(SYS_getppid) == 77 ? 7 : 8);
    }
    waitpid(child, &status, 0);
    return child;
}

static void show(const char *what, long result) {
    printf("%s: %ld %d\n", what, result, result < 0 ? errno : 0);
    fflush(stdout);
}

static void end(pid_t child) {
    ptrace(PTRACE_KILL, child, 0, 0);
    waitpid(child, &status, 0);
}

#ifdef __x86_64__
#define POKE(register, value) ptrace(PTRACE_POKEUSER, child, offsetof(struct user, regs.register), value)

static void step_to(unsigned long address) {
    pid_t child = stopped();
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    registers.rip = address;
    show("rip", ptrace(PTRACE_SETREGS, child, 0, &registers));
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    waitpid(child, &status, 0);
    show("step", status);
    end(child);
}

int main(void) {
    step_to(8);
    step_to(1ul << 63);
    pid_t child = stopped();
    show("ds", POKE(ds, 0x7bul));
    show("cs", POKE(cs, 0x10ul));
    show("fs_base", POKE(fs_base, -1ul));
    show("eflags", POKE(eflags, ~0ul & ~0x100ul));
    show("eflags", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.eflags), 0));
    show("beyond", ptrace(PTRACE_POKEUSER, child, 4096ul, 1ul));
    show("odd", ptrace(PTRACE_PEEKUSER, child, 3ul, 0));
    show("comm", ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_comm), 0));
    show("dr6", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, u_debugreg[6]), 0));
    show("dr6", ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[6]), 0));
    show("dr6", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, u_debugreg[6]), 0));
    ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    waitpid(child, &status, 0);
    show("dr6", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, u_debugreg[6]), 0));
    show("dr7", ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[7]), 0));
    struct user_fpregs_struct fpu;
    show("fpregs", ptrace(PTRACE_GETFPREGS, child, 0, &fpu));
    show("mxcsr", fpu.mxcsr & 0x1f80);
    fpu.cwd = 0x27f;
    show("fpregs", ptrace(PTRACE_SETFPREGS, child, 0, &fpu));
    show("fpregs", ptrace(PTRACE_GETFPREGS, child, 0, &fpu));
    show("cwd", fpu.cwd);
    end(child);
    child = stopped(); /* orig_rax: the call is another one, or none */
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    waitpid(child, &status, 0);
    show("orig_rax", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.orig_rax), 0) == SYS_getppid);
    show("rax", ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rax), 0) == -ENOSYS);
    POKE(orig_rax, -1l);
    POKE(rax, 77ul);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    show("end", WEXITSTATUS(status));
    return 0;
}
#else
static unsigned long words[128];
static struct iovec all;

static long set(int request, pid_t child, long number) {
    all = (struct iovec){words, sizeof words};
    long result = ptrace(request, child, number, &all);
    return result < 0 ? result : (long)all.iov_len;
}

int main(void) {
    pid_t child = stopped();
    uint32_t *debug = (uint32_t *)words;
    for (long number = NT_ARM_HW_BREAK; number <= NT_ARM_HW_WATCH; number++) {
        show("debug registers", set(PTRACE_GETREGSET, child, number));
        show("how many", debug[0]);
        debug[4] = 0x1e5;
        show("one", set(PTRACE_SETREGSET, child, number));
    }
    show("TLS", set(PTRACE_GETREGSET, child, NT_ARM_TLS));
    show("TLS is set", words[0] != 0);
    show("FPSIMD", set(PTRACE_GETREGSET, child, NT_PRFPREG));
    show("unknown", set(PTRACE_GETREGSET, child, 0x999));
    show("user area", ptrace(PTRACE_PEEKUSER, child, 0, 0));
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    waitpid(child, &status, 0);
    show("registers", set(PTRACE_GETREGSET, child, NT_PRSTATUS));
    show("x7 at the entry", words[7]);
    words[33] = 5; /* EL1 */
    show("PSTATE", set(PTRACE_SETREGSET, child, NT_PRSTATUS));
    show("number", set(PTRACE_GETREGSET, child, NT_ARM_SYSTEM_CALL));
    show("getppid", *(int *)words == SYS_getppid);
    *(int *)words = -1; /* no call: x0 stays what it is */
    all = (struct iovec){words, 4};
    show("number", ptrace(PTRACE_SETREGSET, child, NT_ARM_SYSTEM_CALL, &all));
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    waitpid(child, &status, 0);
    set(PTRACE_GETREGSET, child, NT_PRSTATUS);
    show("x7 at the exit", words[7]);
    words[0] = 77;
    all = (struct iovec){words, 272};
    show("registers", ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all));
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    show("end", WEXITSTATUS(status));
    return 0;
}
#endif
