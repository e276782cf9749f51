// The runner's AArch64: state is a fault, some general registers and SP, which way out was taken, NZCV, FPCR, FPSR,
// some vector registers. Instructions are to use no others.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "runner.h"

// Struct request's kind, from its lowest bit on; tests/instructions/aarch64.py has the same.
struct kind {
    uint32_t base : 5;      // the general register (31: SP) that is to point into memory
    uint32_t index : 5;     // the one that is added to it
    uint32_t has_base : 1;  // and so memory is generated and compared
    uint32_t has_index : 1;
    uint32_t jumps : 1;         // the base is to point to code
    uint32_t lane : 3;          // enum preferred: what vectors are made of in half of the inputs
    int32_t displacement : 16;  // that the instruction adds to the base
};
enum preferred { ANY_LANE, HALVES, FLOATS, DOUBLES, INTEGERS };

#define GENERALS 7  // X0..X5, X30
#define VECTORS 11  // V0..V8, V30, V31
enum word {
    FAULT,
    GENERAL = 4,
    STACK = GENERAL + GENERALS,
    SECOND_WAY,
    NZCV,
    FPCR,
    FPSR,
    VECTOR,
    REGISTERS = VECTOR + 2 * VECTORS
};
static const uint8_t GENERAL_NUMBERS[GENERALS] = {0, 1, 2, 3, 4, 5, 30};

const unsigned STATE_WORDS = REGISTERS + MEMORY_WORDS;

// X26 is the runner's stack, X27 the slot, X28 where the state goes; X24 says which way, X25 is the way out.
void enter_slot(const uint64_t* before, uint64_t* after, const uint8_t* slot);
void leave_slot(void);
__asm__(
    ".text\n"
    "enter_slot:\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]\n"
    "mov x26, sp; mov x27, x2; mov x28, x1; mov x24, #0; adr x25, leave_slot\n"
    "ldp x1, x2, [x0, #8*13]; msr nzcv, x1; msr fpcr, x2\n"
    "ldp x1, x2, [x0, #8*15]; msr fpsr, x1\n"
    ".arch_extension simd\n"
    "add x6, x0, #8*16\n"
    "ldp q0, q1, [x6]; ldp q2, q3, [x6, #32]; ldp q4, q5, [x6, #64]; ldp q6, q7, [x6, #96]\n"
    "ldr q8, [x6, #128]; ldp q30, q31, [x6, #144]\n"
    "ldp x30, x1, [x0, #8*10]; mov sp, x1\n"
    "ldp x4, x5, [x0, #8*8]; ldp x2, x3, [x0, #8*6]; ldp x0, x1, [x0, #8*4]\n"
    "br x27\n"
    "leave_slot:\n"
    "stp x0, x1, [x28, #8*4]; stp x2, x3, [x28, #8*6]; stp x4, x5, [x28, #8*8]\n"
    "mov x1, sp; stp x30, x1, [x28, #8*10]\n"
    "mrs x1, nzcv; stp x24, x1, [x28, #8*12]\n"
    "mrs x1, fpcr; mrs x2, fpsr; stp x1, x2, [x28, #8*14]\n"
    "add x6, x28, #8*16\n"
    "stp q0, q1, [x6]; stp q2, q3, [x6, #32]; stp q4, q5, [x6, #64]; stp q6, q7, [x6, #96]\n"
    "str q8, [x6, #128]; stp q30, q31, [x6, #144]\n"
    "mov sp, x26\n"
    "ldp x19, x20, [sp]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]\n"
    "add sp, sp, #160\n"
    "ret\n"
    ".globl _start\n"
    "_start: bl runner_main\n");
_Static_assert(STACK == 11 && NZCV == 13 && FPCR == 14 && FPSR == 15 && VECTOR == 16, "the assembly knows these");

long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

// --- code ---

#define SECOND_WAY_OFFSET 32  // of the slot: where branches are made to go
#define BR_X25 0xd61f0320U
#define MOV_X24_1 0xd2800038U
#define UDF 0x00000000U

void place(uint8_t* slot, const struct request* request) {
    uint32_t* words = (uint32_t*)slot;
    for (unsigned i = 0; i < SLOT_BYTES / 4; i++) words[i] = UDF;
    memcpy(slot, request->code, request->length);
    words[request->length / 4] = BR_X25;
    words[SECOND_WAY_OFFSET / 4] = MOV_X24_1;
    words[SECOND_WAY_OFFSET / 4 + 1] = BR_X25;
}

// --- faults ---

struct kernel_action {
    void (*handler)(int, siginfo_t*, void*);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};
static uint8_t signal_stack[1 << 16];
static uint64_t* faulted;
static uint64_t now_in;  // the slot

// The registers come back with the frame, and leave_slot has them.
static void on_signal(int signal, siginfo_t* info, void* context) {
    ucontext_t* frame = context;
    faulted[0] = (uint64_t)signal;
    faulted[1] = (uint64_t)info->si_code;
    faulted[2] = (uint64_t)info->si_addr;
    faulted[3] = frame->uc_mcontext.pc - now_in;
    frame->uc_mcontext.pc = (uint64_t)leave_slot;
}

static void fill_pools(void);

void install_handler(void) {
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    system_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    struct kernel_action action = {on_signal, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, 0, 0};
    fill_pools();
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        system_call(SYS_rt_sigaction, SIGNALS[i], (long)&action, 0, 8, 0, 0);
}

// --- inputs ---

static struct kind kind_of(const struct request* request) {
    struct kind kind;
    _Static_assert(sizeof kind == sizeof request->kind, "a kind is 32 bits");
    memcpy(&kind, &request->kind, sizeof kind);
    return kind;
}

int uses_memory(const struct request* request) { return kind_of(request).has_base && !kind_of(request).jumps; }
int uses_all_memory(const struct request* request) { return (void)request, 0; }

static uint16_t half_value(struct random* random) {
    static const uint16_t HALVES_OF_INTEREST[] = {0x0000, 0x0001, 0x03ff, 0x0400, 0x0401, 0x3c00, 0x3bff, 0x3c01,
                                                  0x7bff, 0x7c00, 0x7c01, 0x7d00, 0x7e00, 0x7e55, 0x7fff, 0x0200};
    uint64_t bits = next(random);
    return bits & 3 ? (uint16_t)(HALVES_OF_INTEREST[bits >> 4 & 15] | (bits >> 8 & 0x8000)) : (uint16_t)(bits >> 16);
}

static uint64_t four_halves(struct random* random) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 4; i++) value = value << 16 | half_value(random);
    return value;
}

static uint64_t vector_value(struct random* random, enum preferred lane) {
    switch (lane) {
        case HALVES: return four_halves(random);
        case FLOATS: return two_floats(random);
        case DOUBLES: return double_value(random);
        case INTEGERS: return lane_value(random, LANE_INTEGER);
        default: return lane_value(random, (enum lane)below(random, LANES));
    }
}

// Values to draw from, which costs less than to make each: of every kind so many, always the same.
#define POOLED 512
static uint64_t pools[INTEGERS + 1][POOLED], general_pool[POOLED];
static void fill_pools(void) {
    struct random random = {0};
    for (unsigned i = 0; i < POOLED; i++) {
        for (unsigned lane = 0; lane <= INTEGERS; lane++) pools[lane][i] = vector_value(&random, (enum preferred)lane);
        general_pool[i] = integer_value(&random);
    }
}

// `count` values; numbers of them are cut from the bits of few random ones.
static void draw(uint64_t* to, unsigned count, const uint64_t* pool, struct random* random) {
    for (unsigned i = 0; i < count; i += 7) {
        uint64_t bits = next(random);
        for (unsigned j = i; j < count && j < i + 7; j++, bits >>= 9) to[j] = pool[bits % POOLED];
    }
}

#define FPCR_BITS 0x07c00000UL  // AHP, DN, FZ, RMode
#define FPSR_BITS 0x0800009fUL  // QC, IDC, IXC, UFC, OFC, DZC, IOC

static void generate_vectors(uint64_t* state, struct random* random, enum preferred preferred) {
    uint64_t bits = next(random);
    state[NZCV] = bits & 0xf0000000;
    state[FPCR] = bits >> 32 & 1 ? bits >> 33 & FPCR_BITS : bits >> 33 & 0x00c00000;
    state[FPSR] = bits >> 62 ? 0 : next(random) & FPSR_BITS;
    enum preferred lane = bits >> 61 & 1 ? preferred : (enum preferred)below(random, INTEGERS + 1);
    draw(state + VECTOR, 2 * VECTORS, pools[lane], random);
    if (lane == ANY_LANE) state[VECTOR + (bits & 15)] = next(random);
}

// From here on nothing is mapped, here or under QEMU; 17 times that (a base that is its own index) is still an address
// that QEMU's host tells.
#define WILD (1UL << 41)

// Where an instruction is to find its operand: mostly in memory, at the border of the two pages, or at the end of it.
static uint64_t operand_address(struct random* random) {
    uint64_t bits = next(random), middle = MEMORY_BASE + PAGE, end = MEMORY_BASE + MEMORY_BYTES;
    switch (bits & 15) {
        case 0: return end - 64 - below(random, 64);
        case 1:
            switch (bits >> 4 & 15) {  // mostly faults, which take long
                case 0: return bits >> 8 & 3 ? WILD | integer_value(random) % WILD : bits >> 10 & 0xfff;
                case 1: return end + below(random, PAGE);
                case 2:
                case 3: return end - below(random, 72);
                default: break;
            }
            return end - 16 * (4 + below(random, 4));
        case 2:
        case 3:
        case 4: return middle - below(random, 40);
        case 5: return middle - 8 * below(random, 9);
        case 6: return (middle + 16 * below(random, 16)) | (bits & 0xff00000000000000);  // with a tag
        case 7:
        case 8: return middle - 256 + below(random, 400);
        default: return middle - 256 + 16 * below(random, 25);
    }
}

static uint64_t* general_word(uint64_t* state, unsigned number) {
    for (unsigned i = 0; i < GENERALS; i++)
        if (GENERAL_NUMBERS[i] == number) return state + GENERAL + i;
    return state + STACK;
}

static void generate_memory(uint64_t address, struct random* random) {
    for (unsigned i = 0; i < CROSSING_WORDS; i++) crossing()[i] = 0x0101010101010101 * i;
    for (unsigned i = 0; i < LAST_WORDS; i++) last()[i] = 0x0101010101010101 * ~(uint64_t)i;
    uint64_t* word = (uint64_t*)((address & 0x00fffffffffffff8) - 8);
    uint64_t* end = (uint64_t*)(MEMORY_BASE + MEMORY_BYTES);
    enum preferred lane = (enum preferred)below(random, INTEGERS + 1);
    uint64_t values[10];
    draw(values, 10, pools[lane], random);
    for (unsigned i = 0; i < 10 && word >= (uint64_t*)MEMORY_BASE && word < end; i++) *word++ = values[i];
}

static void point_base(uint64_t* state, struct random* random, struct kind kind) {
    uint64_t address = operand_address(random);
    generate_memory(address, random);
    uint64_t offset = (uint64_t)(int64_t)kind.displacement;
    if (kind.has_index && kind.index != 31) {  // small, so that it may be scaled, but not always positive
        uint64_t index = next(random) % 40 - 8;
        *general_word(state, kind.index) = index;
        offset += index & 8 ? index : 0;
    }
    *general_word(state, kind.base) = address - offset;
}

static uint64_t target(struct random* random) {
    uint64_t bits = next(random), way = now_in + SECOND_WAY_OFFSET;
    switch (bits & 15) {
        case 0: return way | (bits >> 8 & 3);
        case 1: return MEMORY_BASE + (bits >> 8 & 0xfff);
        case 2: return bits >> 8 & 0xfffc;
        case 3: return way | (bits & 0xff00000000000000);
        default: return way;
    }
}

void generate(uint64_t* state, struct random* random, const struct request* request) {
    struct kind kind = kind_of(request);
    now_in = CODE_BASE + (uint64_t)request->slot * SLOT_BYTES;
    for (unsigned i = 0; i < REGISTERS; i++) state[i] = 0;
    draw(state + GENERAL, GENERALS + 1, general_pool, random);  // and SP
    state[GENERAL + below(random, GENERALS)] = next(random);
    if (!(next(random) & 7)) state[GENERAL + 1] = state[GENERAL + 2] = state[GENERAL];
    generate_vectors(state, random, (enum preferred)kind.lane);
    if (kind.has_base && kind.jumps) *general_word(state, kind.base) = target(random);
    if (kind.has_base && !kind.jumps) point_base(state, random, kind);
}

// --- execution ---

void execute(const uint64_t* before, uint64_t* after, const uint8_t* slot) {
    now_in = (uint64_t)slot;
    faulted = after;
    enter_slot(before, after, slot);
}
