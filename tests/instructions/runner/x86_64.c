// The runner's x86-64: state is a fault, 16 general registers, RFLAGS, which way out was taken, and FXSAVE's image.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "runner.h"

// Bits of struct request's kind; tests/instructions/x86_64/forms.py has the same.
enum kind {
    MEMORY = 1,       // RBX, RSI and RDI point into memory, whose contents are generated and compared
    STACK = 2,        // so does RSP
    ALL_MEMORY = 4,   // anything of it may be written
    X87_MEMORY = 8,   // memory has extended values, and images of the x87's state
    TARGETS = 16,     // values are often the address of the second way out
    WHOLE_IMAGE = 32  // memory at RBX is an image of FXSAVE
};

enum word { FAULT, GENERAL = 4, FLAGS = 20, SECOND_WAY, FS_BASE, GS_BASE, IMAGE, REGISTERS = IMAGE + 64 };
enum general { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

const unsigned STATE_WORDS = REGISTERS + MEMORY_WORDS;

#define CF_PF_AF_ZF_SF_DF_OF 0xcd5UL
#define RFLAGS_FIXED 0x202UL
#define RFLAGS_RF 0x10000UL
#define MXCSR_WRITABLE 0xffffUL
#define MXCSR_MASKS 0x1f80UL
#define X87_MASKS 0x3fUL

// What the assembly below reads and writes by name.
struct machine {
    uint64_t general[16];
    uint64_t flags, second_way;
    uint64_t padding[6];
    uint64_t image[64];  // FXSAVE's, which must be aligned
} __attribute__((aligned(64)));
struct machine machine_in, machine_out;
uint64_t machine_slot, runner_stack;

void enter_slot(void);
void leave_slot(void);
void leave_slot_second(void);
void leave_after_fault(void);
__asm__(
    ".text\n"
    "enter_slot:\n"
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, runner_stack\n"
    "fxrstor64 machine_in+192\n"
    "pushq machine_in+128; popfq\n"
    "mov machine_in, %rax; mov machine_in+8, %rcx; mov machine_in+16, %rdx; mov machine_in+24, %rbx\n"
    "mov machine_in+32, %rsp; mov machine_in+40, %rbp; mov machine_in+48, %rsi; mov machine_in+56, %rdi\n"
    "mov machine_in+64, %r8; mov machine_in+72, %r9; mov machine_in+80, %r10; mov machine_in+88, %r11\n"
    "mov machine_in+96, %r12; mov machine_in+104, %r13; mov machine_in+112, %r14; mov machine_in+120, %r15\n"
    "jmp *machine_slot\n"
    "leave_slot_second:\n"
    "movb $1, machine_out+136\n"
    "leave_slot:\n"
    "mov %rax, machine_out; mov %rcx, machine_out+8; mov %rdx, machine_out+16; mov %rbx, machine_out+24\n"
    "mov %rsp, machine_out+32; mov %rbp, machine_out+40; mov %rsi, machine_out+48; mov %rdi, machine_out+56\n"
    "mov %r8, machine_out+64; mov %r9, machine_out+72; mov %r10, machine_out+80; mov %r11, machine_out+88\n"
    "mov %r12, machine_out+96; mov %r13, machine_out+104; mov %r14, machine_out+112; mov %r15, machine_out+120\n"
    "mov runner_stack, %rsp\n"
    "pushfq; popq machine_out+128\n"
    "pushq $0x202; popfq\n"
    "fxsave64 machine_out+192\n"
    "leave_after_fault:\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "ret\n"
    ".globl _start\n"
    "_start: and $-16, %rsp; call runner_main; hlt\n"
    "restore_signal: mov $15, %eax; syscall\n");

long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// --- code ---

#define JUMP_BYTES 5
#define SECOND_WAY_OFFSET 48  // of the slot: where branches with a displacement are made to go

static void jump(uint8_t* at, void (*target)(void)) {
    int32_t distance = (int32_t)((intptr_t)target - (intptr_t)at - JUMP_BYTES);
    at[0] = 0xe9;
    memcpy(at + 1, &distance, sizeof distance);
}

void place(uint8_t* slot, const struct request* request) {
    memset(slot, 0xcc, SLOT_BYTES);
    memcpy(slot, request->code, request->length);
    jump(slot + request->length, leave_slot);
    jump(slot + SECOND_WAY_OFFSET, leave_slot_second);
}

// --- faults ---

struct kernel_action {
    void (*handler)(int, siginfo_t*, void*);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};
void restore_signal(void);
#define SIGNAL_STACK 0x5a5a5a5a0000UL  // where hardly any RSP points: the kernel would believe to be on it
#define SIGNAL_STACK_BYTES (1UL << 16)
static uint64_t* faulted;
static uint64_t now_in;  // the slot

static const uint8_t FRAME_REGISTERS[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void on_signal(int signal, siginfo_t* info, void* context) {
    ucontext_t* frame = context;
    greg_t* registers = frame->uc_mcontext.gregs;
    if (faulted[0]) system_call(SYS_exit_group, 7, 0, 0, 0, 0, 0);  // on the way out, too: that does not end
    faulted[0] = (uint64_t)signal;
    faulted[1] = (uint64_t)info->si_code;
    faulted[2] = (uint64_t)info->si_addr;
    faulted[3] = (uint64_t)registers[REG_RIP] - now_in;
    for (unsigned i = 0; i < 16; i++) machine_out.general[i] = (uint64_t)registers[FRAME_REGISTERS[i]];
    machine_out.flags = (uint64_t)registers[REG_EFL];
    memcpy(machine_out.image, frame->uc_mcontext.fpregs, sizeof machine_out.image);
    registers[REG_RIP] = (greg_t)leave_after_fault;
    registers[REG_RSP] = (greg_t)runner_stack;
    registers[REG_EFL] = RFLAGS_FIXED;
}

void install_handler(void) {
    system_call(SYS_mmap, SIGNAL_STACK, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    stack_t stack = {.ss_sp = (void*)SIGNAL_STACK, .ss_size = SIGNAL_STACK_BYTES};
    system_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    struct kernel_action action = {on_signal, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | 0x04000000, restore_signal, 0};
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        system_call(SYS_rt_sigaction, SIGNALS[i], (long)&action, 0, 8, 0, 0);
}

// --- inputs ---

int uses_memory(const struct request* request) { return request->kind & (MEMORY | STACK | ALL_MEMORY) ? 1 : 0; }
int uses_all_memory(const struct request* request) { return request->kind & ALL_MEMORY ? 1 : 0; }

static const uint64_t SIGNIFICANDS[] = {
    0x8000000000000000, 0xc000000000000000, 0xffffffffffffffff, 0x8000000000000001, 0xa000000000000000,
    0xc90fdaa22168c235, 0x0000000000000000, 0x0000000000000001, 0x4000000000000000, 0x7fffffffffffffff,
    0xfffffffffffffc00, 0xfffffffffffff800, 0xffffff0000000000, 0x8000000000000400,
};
static const uint16_t EXPONENTS[] = {
    0x3fff, 0x3ffe, 0x4000, 0x0000, 0x0001, 0x7ffe, 0x7fff, 0x3fbf, 0x403e, 0x403d, 0x401e,
    0x400e, 0x43fe, 0x3c01, 0x3c00, 0x3bcd, 0x407e, 0x3f81, 0x3f6a, 0x3ffd, 0x4001,
};

// Of the x87: `significand`, and the exponent with the sign.
static uint16_t extended_value(struct random* random, uint64_t* significand) {
    uint64_t bits = next(random), choice = bits & 7;
    uint16_t sign = (uint16_t)(bits >> 16) & 0x8000;
    uint64_t top = 1UL << 63;
    *significand = bits = next(random);
    switch (choice) {
        case 0:
        case 1:
        case 2: {
            *significand = SIGNIFICANDS[below(random, sizeof SIGNIFICANDS / 8)];
            uint16_t exponent = EXPONENTS[below(random, sizeof EXPONENTS / 2)];
            if (exponent && choice) *significand |= top;
            return sign | exponent;
        }
        case 3: return (uint16_t)next(random);
        case 4: *significand |= top; return sign | (uint16_t)(0x3fff + below(random, 66));
        case 5:
            *significand = (bits | top) & 0xffff000000000000;
            return sign | (uint16_t)(0x3fff - 8 + below(random, 16));
        case 6: *significand |= top; return sign | (uint16_t)below(random, 0x7fff);
        default: *significand |= top; return sign | (uint16_t)(0x3fff - 8 + below(random, 16));
    }
}

// Exceptions are mostly masked, or hardly anything else would be seen.
static uint64_t mxcsr_value(struct random* random) {
    uint64_t bits = next(random), rounding = bits & 0x6000, sticky = bits >> 32 & 3 ? 0 : bits >> 16 & 0x3f;
    uint64_t flushes = (bits >> 34 & 7 ? 0 : 0x8000) | (bits >> 37 & 7 ? 0 : 0x40);
    uint64_t masks = bits >> 40 & 7 ? MXCSR_MASKS : bits & MXCSR_MASKS;
    return rounding | sticky | flushes | masks;
}

static uint64_t x87_control_value(struct random* random) {
    uint64_t bits = next(random), masks = bits >> 40 & 7 ? X87_MASKS : bits & X87_MASKS;
    uint64_t precision = bits >> 44 & 1 ? 0x300 : bits & 0x300;
    return 0x40 | (bits & 0xc00) | precision | masks;
}

// The x87's control, status and (abridged) tag words as the first word of FXSAVE's image has them.
static uint64_t x87_words(struct random* random) {
    uint64_t bits = next(random), control = x87_control_value(random);
    uint64_t status = bits & 0x7f00, tags = bits >> 32 & 3 ? 0xff : bits >> 48 & 0xff;
    if (!(bits >> 34 & 7)) status |= bits >> 16 & 0x7f;          // sticky flags
    if (bits >> 37 & 15) status &= ~(~control & 0x3f) & 0xffff;  // of an unmasked one: pending
    if (status & ~control & 0x3f) status |= 0x8080;              // ES and B, which FXRSTOR works out itself
    return control | status << 16 | tags << 32;
}

static void generate_image(uint64_t* image, struct random* random) {
    for (unsigned i = 0; i < 64; i++) image[i] = 0;
    image[0] = x87_words(random);
    image[3] = mxcsr_value(random);
    for (unsigned i = 0; i < 8; i++) image[4 + 2 * i + 1] = extended_value(random, &image[4 + 2 * i]);
    if (!(next(random) & 3))  // the same value twice
        image[6] = image[4], image[7] = image[5];
    enum lane lane = (enum lane)below(random, LANES);
    for (unsigned i = 0; i < 32; i++) image[20 + i] = lane_value(random, lane);
}

static void generate_memory(struct random* random, uint32_t kind) {
    enum lane lane = (enum lane)below(random, LANES);
    for (unsigned i = 0; i < CROSSING_WORDS; i++) crossing()[i] = lane_value(random, lane);
    for (unsigned i = 0; i < LAST_WORDS; i++) last()[i] = lane_value(random, lane);
    if (kind & TARGETS && next(random) & 1)
        for (unsigned i = 0; i < CROSSING_WORDS; i++) crossing()[i] = now_in + SECOND_WAY_OFFSET;
}

static void write_memory(uint64_t address, const void* from, size_t size) {
    uint64_t end = MEMORY_BASE + MEMORY_BYTES;
    if (address >= MEMORY_BASE && address < end && size <= end - address) memcpy((void*)address, from, size);
}

// Memory at `address`, for loads of the x87: an extended value, or its environment and registers.
static void generate_x87_memory(struct random* random, uint64_t address) {
    uint64_t words = x87_words(random);
    uint8_t image[108];
    for (unsigned i = 0; i < 28; i += 4) {
        uint32_t word = i == 8 ? (uint32_t)(next(random)) : 0;
        if (i == 0) word = words & 0xffff;
        if (i == 4) word = words >> 16 & 0xffff;
        memcpy(image + i, &word, 4);
    }
    for (unsigned i = 0; i < 8; i++) {
        uint64_t significand;
        uint16_t exponent = extended_value(random, &significand);
        memcpy(image + 28 + 10 * i, &significand, 8);
        memcpy(image + 36 + 10 * i, &exponent, 2);
    }
    if (next(random) & 1)
        write_memory(address, image, sizeof image);
    else
        write_memory(address, image + 28, 10);
}

// In most cases where operands fit, at any alignment: at the border of the two pages, at the end, beyond it.
static uint64_t pointer_value(struct random* random) {
    uint64_t bits = next(random);
    uint64_t middle = MEMORY_BASE + PAGE, end = MEMORY_BASE + MEMORY_BYTES;
    switch (bits & 15) {
        case 0: return end - below(random, 40);
        case 1: return end - 16 * below(random, 20);
        case 2: return (bits >> 8 & 3) ? middle + 16 : integer_value(random);
        case 3:
        case 4:
        case 5: return middle - below(random, 40);
        case 6: return middle - 8 * below(random, 10);
        default: return middle - 128 + 16 * below(random, 16);
    }
}

void generate(uint64_t* state, struct random* random, const struct request* request) {
    uint32_t kind = request->kind;
    now_in = CODE_BASE + (uint64_t)request->slot * SLOT_BYTES;
    uint64_t* general = state + GENERAL;
    for (unsigned i = 0; i < GENERAL; i++) state[i] = 0;
    for (unsigned i = 0; i < 16; i++) general[i] = integer_value(random);
    if (!(next(random) & 7)) general[RCX] = general[RAX];
    if (kind & TARGETS && next(random) & 1)
        for (unsigned i = 0; i < 16; i++) general[i] = now_in + SECOND_WAY_OFFSET;
    if (kind & MEMORY) {
        general[RBX] = pointer_value(random);
        general[RSI] = pointer_value(random);
        general[RDI] = next(random) & 7 ? pointer_value(random) : general[RSI] + below(random, 33) - 16;
    }
    if (kind & ALL_MEMORY && next(random) & 15) general[RCX] &= 63;
    if (kind & STACK) general[RSP] = pointer_value(random), general[RBP] = pointer_value(random);
    state[FLAGS] = RFLAGS_FIXED | (next(random) & CF_PF_AF_ZF_SF_DF_OF);
    state[SECOND_WAY] = 0;
    generate_image(state + IMAGE, random);
    if (kind & (MEMORY | STACK | ALL_MEMORY)) generate_memory(random, kind);
    if (kind & MEMORY && !(next(random) & 3)) {  // so that comparisons and exchanges find what they expect
        write_memory(general[RBX], &general[RAX], 8);
        write_memory(general[RBX] + 8, &general[RDX], 8);
    }
    if (kind & X87_MEMORY) generate_x87_memory(random, general[RBX]);
    if (kind & WHOLE_IMAGE) {
        uint64_t image[64];
        generate_image(image, random);
        write_memory(general[RBX], image, sizeof image);
    }
}

// --- execution ---

static void copy(uint64_t* to, const uint64_t* from, unsigned words) {
    for (unsigned i = 0; i < words; i++) to[i] = from[i];
}

// What depends on the model even where all is as it should be: the x87's last instruction and operand, which AMD saves
// only with an exception pending, MXCSR_MASK, and what FXSAVE leaves alone.
static void clean_image(uint64_t* image) {
    image[0] &= 0x000000ffffffffff;
    image[1] = image[2] = 0;
    image[3] &= 0xffffffff;
    for (unsigned i = 0; i < 8; i++) image[4 + 2 * i + 1] &= 0xffff;
    for (unsigned i = 52; i < 64; i++) image[i] = 0;
}

// Both sides have FSGSBASE, and Linux lets users have it: tests/instructions/test_x86_64.py looks.
static uint64_t fs_base(void) {
    uint64_t base;
    __asm__ volatile("rdfsbase %0" : "=r"(base));
    return base;
}

static uint64_t gs_base(void) {
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

// A case may have loaded them, and the next one would see it. Our machine's are always null, and cannot be loaded.
static void clear_selectors(void) {
    uint32_t selectors, one;
    __asm__ volatile("mov %%ds, %0; mov %%es, %1; or %1, %0; mov %%fs, %1; or %1, %0; mov %%gs, %1; or %1, %0"
                     : "=&r"(selectors), "=&r"(one));
    if (selectors) __asm__ volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%fs; mov %0, %%gs" : : "r"(0));
}

void execute(const uint64_t* before, uint64_t* after, const uint8_t* slot) {
    copy(machine_in.general, before + GENERAL, 16);
    machine_in.flags = before[FLAGS];
    copy(machine_in.image, before + IMAGE, 64);
    machine_out.second_way = 0;
    machine_slot = now_in = (uint64_t)slot;
    faulted = after;
    enter_slot();
    after[FS_BASE] = fs_base();
    after[GS_BASE] = gs_base();
    clear_selectors();
    __asm__ volatile("wrfsbase %0; wrgsbase %0" : : "r"(0UL));
    copy(after + GENERAL, machine_out.general, 16);
    after[FLAGS] = machine_out.flags & ~RFLAGS_RF;  // faults show it in their frame, and say nothing by it
    after[SECOND_WAY] = machine_out.second_way;
    copy(after + IMAGE, machine_out.image, 64);
    clean_image(after + IMAGE);
}
