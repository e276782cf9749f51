/* Exceptions in ring 0 and ring 3: vector, error code, whether it is before or behind the instruction, and CR2. */
#include "bare.h"

enum { PRESENT = 1, WRITES = 2, USER = 4, FETCHES = 16 };
enum { THERE = -1 };

CODE(undefined, "ud2");
CODE(divides, "1: xor %ecx, %ecx\n\txor %edx, %edx\n\tdiv %ecx");
CODE(breaks, "int3");
CODE(calls, "int $0x30");
CODE(loads, "movl (" ACCUMULATOR "), %ecx");
CODE(stores, "movl %ecx, (" ACCUMULATOR ")");
CODE(adds, "addl %ecx, (" ACCUMULATOR ")");
CODE(jumps, "jmp *" ACCUMULATOR);
CODE(halts, "hlt");
CODE(clears, "cli");
CODE(sets, "sti");
CODE(reads_port, "inb $0x80, %al");
CODE(writes_port, "outb %al, $0x80");
CODE(reads_msr, "rdmsr");
CODE(writes_msr, "wrmsr");
CODE(writes_control, "mov " ACCUMULATOR ", %cr0");
CODE(reads_control, "mov %cr3, " ACCUMULATOR);
CODE(reads_debug, "mov %dr7, " ACCUMULATOR);
CODE(loads_gates, "lidt (" ACCUMULATOR ")");
CODE(loads_descriptors, "lgdt (" ACCUMULATOR ")");
CODE(loads_task, "ltr %ax");
CODE(loads_local, "lldt %ax");
CODE(invalidates, "invlpg (" ACCUMULATOR ")");
CODE(writes_back, "wbinvd");
CODE(clears_task_switched, "clts");
CODE(loads_segment, "mov %eax, %ds");
CODE(loads_stack_segment, "mov %eax, %ss");
CODE(undefined_too, "ud1 %eax, %eax");
#ifdef __x86_64__
CODE(into, ".byte 0xce");
CODE(swaps, "swapgs");
CODE(returns_to_users, "sysretq");
#else
CODE(calls_others, "int $0x31"); /* QEMU 7.2 has another error code for it in long mode than the manual */
CODE(into, "movl $0x7fffffff, %ecx\n\tincl %ecx\n\tinto");
#endif

static const struct attempt {
    const char *what, *code;
    bool is_user;
    unsigned vector, error;
    int place; /* from the code's beginning, or where it jumps to */
    word argument;
} attempts[] = {
    {"ring 0: UD2", undefined, false, UNDEFINED, 0, 0, 0},
    {"ring 0: UD1", undefined_too, false, UNDEFINED, 0, 0, 0},
    {"ring 0: a division by zero", divides, false, DIVISION, 0, 4, 0},
    {"ring 0: INT3", breaks, false, BREAKPOINT, 0, 1, 0},
    {"ring 0: INT n", calls, false, 0x30, 0, 2, 0},
    {"ring 0: a load from what is not there", loads, false, PAGE, 0, 0, PIECES + NOT_THERE + 4},
    {"ring 0: a store to what is not there", stores, false, PAGE, WRITES, 0, PIECES + NOT_THERE + 8},
    {"ring 0: a store to what is read only", stores, false, PAGE, PRESENT | WRITES, 0, PIECES + READ_ONLY},
    {"ring 0: an addition to what is read only", adds, false, PAGE, PRESENT | WRITES, 0, PIECES + READ_ONLY + 12},
    {"ring 0: executes what it must not", jumps, false, PAGE, PRESENT | FETCHES, THERE, PIECES + NOT_EXECUTED},
    {"ring 0: executes what is not there", jumps, false, PAGE, FETCHES, THERE, PIECES + NOT_THERE},
    {"ring 0: a segment that is none", loads_segment, false, PROTECTION, 0x1230, 0, 0x1230},
    {"ring 0: a stack without a segment of ring 0", loads_stack_segment, false, PROTECTION, 0x18, 0, 0x1b},
    {"ring 3: UD2", undefined, true, UNDEFINED, 0, 0, 0},
    {"ring 3: a division by zero", divides, true, DIVISION, 0, 4, 0},
    {"ring 3: INT3", breaks, true, BREAKPOINT, 0, 1, 0},
    {"ring 3: INT n", calls, true, 0x30, 0, 2, 0},
    {"ring 3: a load of ring 0's", loads, true, PAGE, USER | PRESENT, 0, PIECES + OF_RING_0 + 16},
    {"ring 3: a store to ring 0's", stores, true, PAGE, USER | WRITES | PRESENT, 0, PIECES + OF_RING_0},
    {"ring 3: a store to what is read only", stores, true, PAGE, USER | WRITES | PRESENT, 0, PIECES + READ_ONLY},
    {"ring 3: a load from what is not there", loads, true, PAGE, USER, 0, PIECES + NOT_THERE},
    {"ring 3: executes what it must not", jumps, true, PAGE, USER | PRESENT | FETCHES, THERE, PIECES + NOT_EXECUTED},
    {"ring 3: executes ring 0's", jumps, true, PAGE, USER | PRESENT | FETCHES, THERE, PIECES + OF_RING_0},
    {"ring 3: HLT", halts, true, PROTECTION, 0, 0, 0},
    {"ring 3: CLI", clears, true, PROTECTION, 0, 0, 0},
    {"ring 3: STI", sets, true, PROTECTION, 0, 0, 0},
    {"ring 3: IN", reads_port, true, PROTECTION, 0, 0, 0},
    {"ring 3: OUT", writes_port, true, PROTECTION, 0, 0, 0},
    {"ring 3: RDMSR", reads_msr, true, PROTECTION, 0, 0, 0},
    {"ring 3: WRMSR", writes_msr, true, PROTECTION, 0, 0, 0},
    {"ring 3: MOV to CR0", writes_control, true, PROTECTION, 0, 0, 0},
    {"ring 3: MOV from CR3", reads_control, true, PROTECTION, 0, 0, 0},
    {"ring 3: MOV from DR7", reads_debug, true, PROTECTION, 0, 0, 0},
    {"ring 3: LIDT", loads_gates, true, PROTECTION, 0, 0, 0x200000},
    {"ring 3: LGDT", loads_descriptors, true, PROTECTION, 0, 0, 0x200000},
    {"ring 3: LTR", loads_task, true, PROTECTION, 0, 0, 0x28},
    {"ring 3: LLDT", loads_local, true, PROTECTION, 0, 0, 0},
    {"ring 3: INVLPG", invalidates, true, PROTECTION, 0, 0, 0x200000},
    {"ring 3: WBINVD", writes_back, true, PROTECTION, 0, 0, 0},
    {"ring 3: CLTS", clears_task_switched, true, PROTECTION, 0, 0, 0},
    {"ring 3: a segment of ring 0's", loads_segment, true, PROTECTION, 0x10, 0, 0x10},
    {"ring 3: no stack", loads_stack_segment, true, PROTECTION, 0, 0, 0},
#ifdef __x86_64__
    {"ring 0: a load from what is no address", loads, false, PROTECTION, 0, 0, 1ul << 47},
    {"ring 3: a load from what is no address", loads, true, PROTECTION, 0, 0, 1ul << 47},
    {"ring 3: INTO is none", into, true, UNDEFINED, 0, 0, 0},
    {"ring 3: SWAPGS", swaps, true, PROTECTION, 0, 0, 0},
    {"ring 3: SYSRET", returns_to_users, true, UNDEFINED, 0, 0, 0},
#else
    {"ring 3: INT n that is not its own", calls_others, true, PROTECTION, 0x31 * 8 + 2, 0, 0},
    {"ring 0: INTO", into, false, OVERFLOW, 0, 7, 0},
    {"ring 3: INTO", into, true, OVERFLOW, 0, 7, 0},
#endif
};

void check_exceptions(void) {
    for (unsigned number = 0; number < sizeof attempts / sizeof *attempts; number++) {
        const struct attempt* it = &attempts[number];
        try(it->code, it->is_user, it->argument);
        word place = it->place == THERE ? it->argument : (word)it->code + (word)it->place;
        bool is_right = seen.vector == it->vector && seen.error == it->error && seen.ip == place;
        is_right &= seen.cs == (it->is_user ? 0x23 : 0x08);
        if (it->vector == PAGE) is_right &= seen.address == it->argument;
        check(is_right, it->what, (uint64_t)seen.vector << 32 | seen.error);
        if (!is_right) {
            say("  place, from the code on; CS; CR2: ");
            say_number(seen.ip - (word)it->code);
            say(" ");
            say_number(seen.cs);
            say(" ");
            say_number(seen.address);
            say("\n");
        }
    }
}
