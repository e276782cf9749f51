/* What the image's parts know of one another. All of it was written for it: there is no library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_CPUS 8
typedef unsigned long word; /* of a register */
#ifdef __x86_64__
#define LONG true
#else
#define LONG false
#endif

/* console.c */
void say(const char *text);
void say_number(uint64_t number);
void check(bool is_right, const char *what, uint64_t found);
void expect(uint64_t found, uint64_t wanted, const char *what);
void end(void);
uint8_t in8(uint16_t port);
void out8(uint16_t port, uint8_t value);
void out16(uint16_t port, uint16_t value);

/* traps.c */
struct frame {
    word vector, error, ip, cs, flags;
};
struct seen { /* of what ended try() */
    word vector, error, ip, cs, address;
};
extern struct seen seen;
extern volatile unsigned taken[MOST_CPUS][256]; /* interrupts */
void set_gates(void);
void try(const void *code, word is_user, word argument);
enum { DIVISION = 0, BREAKPOINT = 3, OVERFLOW = 4, RANGE = 5, UNDEFINED = 6, NO_MATH = 7, PROTECTION = 13, PAGE = 14 };

/* What to try, up to NAME_end, and then what is undefined. The argument is in the ACCUMULATOR. */
#define CODE(name, ...)                                                                                     \
    __asm__(".pushsection .text\n" #name ":\n\t" __VA_ARGS__ "\n" #name "_end:\n\tud2\n\t.popsection"); \
    extern const char name[], name##_end[]
#ifdef __x86_64__
#define ACCUMULATOR "%rax"
#else
#define ACCUMULATOR "%eax"
#endif
#define PIECES 0xc0000000u /* of 2 MiB: of ring 0, read only, not executed, not there; start.S */
enum { OF_RING_0 = 0, READ_ONLY = 0x200000, NOT_EXECUTED = 0x400000, NOT_THERE = 0x600000 };

/* apic.c */
enum { ID = 0x20, VERSION = 0x30, TASK_PRIORITY = 0x80, END = 0xb0, SPURIOUS = 0xf0, COMMAND = 0x300, COMMAND_TO = 0x310, TIMER = 0x320, INITIAL = 0x380, CURRENT = 0x390, DIVIDE = 0x3e0 };
uint32_t apic(unsigned offset);
void set_apic(unsigned offset, uint32_t value);
void start_apic(void);
unsigned this_cpu(void);
uint32_t io_apic(unsigned number);
void set_io_apic(unsigned number, uint32_t value);
bool waits_for(bool (*happens)(word), word argument);
bool comes(unsigned vector, unsigned count); /* so often, on this CPU, and no more */
void forget(unsigned vector);
void let_interrupts_come(bool on);

extern unsigned cpus;
extern bool with_reserved; /* the command line ends with "reserved" */
void check_exceptions(void);
void check_features(void);
void check_apic(void);
void check_cpus(void);
void check_perfmon(void);
