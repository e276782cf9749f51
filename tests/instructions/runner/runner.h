// One program that executes instructions on generated inputs, natively or as a guest: see runner.c.
// What an ISA adds is one file: x86_64.c, aarch64.c. Built without a C library, so that both sides run the same code.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CODE_BYTES 24
#define SLOT_BYTES 64
#define IGNORED 3

// What to execute: `length` bytes of code on the inputs `first` to `first + count - 1` that belong to `seed`.
// tests/instructions/protocol.py packs it.
struct request {
    uint8_t code[CODE_BYTES];
    uint32_t length;
    uint32_t kind;  // bits that the ISA gives a meaning to: what inputs should be like
    uint64_t seed;
    uint32_t slot;  // where the code goes
    uint32_t first;
    uint32_t count;
    uint32_t unused;
    struct {
        uint64_t word, bits;
    } ignored[IGNORED];  // bits of the state that the second hash leaves out
};

// A fault, if there was one: the first four words of every state.
struct fault {
    uint64_t signal, code, address;
    uint64_t pc;  // relative to the slot
};

#define CODE_BASE 0x30000000UL
#define MEMORY_BASE 0x20001000UL  // two pages, with a page before and behind that are not mapped
#define PAGE 4096UL
#define MEMORY_BYTES (2 * PAGE)
#define CROSSING_WORDS 128  // the part of memory around the border of the two pages: that many words
#define LAST_WORDS 64       // and the part before the end
#define MEMORY_WORDS (CROSSING_WORDS + LAST_WORDS)

static inline uint64_t* crossing(void) { return (uint64_t*)(MEMORY_BASE + PAGE - CROSSING_WORDS * 4); }
static inline uint64_t* last(void) { return (uint64_t*)(MEMORY_BASE + MEMORY_BYTES - LAST_WORDS * 8); }

void* memcpy(void* to, const void* from, size_t size);
void* memset(void* to, int value, size_t size);

// splitmix64: the same numbers on every machine.
struct random {
    uint64_t state;
};
static inline uint64_t next(struct random* random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static inline uint64_t below(struct random* random, uint64_t bound) { return (next(random) >> 32) * bound >> 32; }

// Values that instructions find interesting: values.c.
uint64_t integer_value(struct random* random);
uint64_t double_value(struct random* random);
uint64_t two_floats(struct random* random);
enum lane { LANE_FLOAT, LANE_DOUBLE, LANE_INTEGER, LANE_BYTES, LANE_RANDOM, LANES };
uint64_t lane_value(struct random* random, enum lane lane);

// --- what an ISA's file defines ---

extern const unsigned STATE_WORDS;  // of its state: a fault, its registers, and MEMORY_WORDS at the end
long system_call(long number, long a, long b, long c, long d, long e, long f);
void place(uint8_t* slot, const struct request* request);  // the code, and behind it the way back
void install_handler(void);
// Fills registers (and memory, if the request's kind wants it) of input `random`.
void generate(uint64_t* state, struct random* random, const struct request* request);
// Executes from `before`; what is then is in `after`, but for memory.
void execute(const uint64_t* before, uint64_t* after, const uint8_t* slot);
int uses_memory(const struct request* request);
int uses_all_memory(const struct request* request);  // and not only the two parts that are compared by words
