// What an x87 instruction leaves behind for the next ones: random sequences of twenty, from registers and memory.

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SEQUENCES = 3000, LENGTH = 20, PRINTED = 100 };

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// What FNSAVE stores: control, status and tag words, pointers, eight registers of ten bytes.
struct Saved {
    uint32_t control, status, tags, pointers[4];
    uint8_t registers[80];
} __attribute__((packed));

static struct {
    double number;
    float single;
    int32_t integer;
    int64_t long_integer;
    int16_t short_integer;
    uint16_t control;
    long double extended;
} operands;
static struct Saved saved;
static uint64_t stored[2], flags;

static const double NUMBERS[] = {0.0, -0.0, 1.0, -1.5, 3.25, 1e300, -1e-310, 1e-300, 1000.0, __builtin_inf()};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof NUMBERS[0] };

// Two bytes, of which the last takes a register's number; FCMOVcc at the end.
static const uint8_t WITH_REGISTER[][2] = {
    {0xd8, 0xc0}, {0xd8, 0xc8}, {0xd8, 0xd0}, {0xd8, 0xd8}, {0xd8, 0xe0}, {0xd8, 0xe8}, {0xd8, 0xf0},
    {0xd8, 0xf8}, {0xd9, 0xc0}, {0xd9, 0xc0}, {0xd9, 0xc8}, {0xd9, 0xc8}, {0xdb, 0xe8}, {0xdb, 0xf0},
    {0xdc, 0xc0}, {0xdc, 0xc8}, {0xdc, 0xe0}, {0xdc, 0xe8}, {0xdc, 0xf0}, {0xdc, 0xf8}, {0xdd, 0xc0},
    {0xdd, 0xd0}, {0xdd, 0xd8}, {0xdd, 0xe0}, {0xdd, 0xe8}, {0xde, 0xc0}, {0xde, 0xc8}, {0xde, 0xe0},
    {0xde, 0xe8}, {0xde, 0xf0}, {0xde, 0xf8}, {0xdf, 0xe8}, {0xdf, 0xf0}, {0xda, 0xc0}, {0xda, 0xc8},
    {0xda, 0xd0}, {0xda, 0xd8}, {0xdb, 0xc0}, {0xdb, 0xc8}, {0xdb, 0xd0}, {0xdb, 0xd8}};
// FCHS, FABS, FTST, FXAM, the seven constants, FRNDINT, FSQRT, FSCALE, FDECSTP, FINCSTP, FXTRACT, FPREM, FPREM1,
// FCOMPP, FUCOMPP, FNCLEX, FNOP.
static const uint8_t ALONE[][2] = {{0xd9, 0xe0}, {0xd9, 0xe1}, {0xd9, 0xe4}, {0xd9, 0xe5}, {0xd9, 0xe8}, {0xd9, 0xe9},
                                   {0xd9, 0xea}, {0xd9, 0xeb}, {0xd9, 0xec}, {0xd9, 0xed}, {0xd9, 0xee}, {0xd9, 0xee},
                                   {0xd9, 0xfc}, {0xd9, 0xfa}, {0xd9, 0xfd}, {0xd9, 0xf6}, {0xd9, 0xf7}, {0xd9, 0xf4},
                                   {0xd9, 0xf8}, {0xd9, 0xf5}, {0xde, 0xd9}, {0xda, 0xe9}, {0xdb, 0xe2}, {0xd9, 0xd0}};
// Opcode, and the extension of it in ModRM; what they read or write.
static const struct {
    uint8_t opcode, extension;
    void* operand;
} IN_MEMORY[] = {
    {0xd9, 0, &operands.single},
    {0xdd, 0, &operands.number},
    {0xdb, 5, &operands.extended},
    {0xdb, 0, &operands.integer},
    {0xdf, 0, &operands.short_integer},
    {0xdf, 5, &operands.long_integer},
    {0xd8, 0, &operands.single},
    {0xd8, 4, &operands.single},
    {0xdc, 1, &operands.number},
    {0xdc, 6, &operands.number},
    {0xdc, 3, &operands.number},
    {0xda, 0, &operands.integer},
    {0xda, 5, &operands.integer},
    {0xde, 1, &operands.short_integer},
    {0xde, 2, &operands.short_integer},
    {0xd9, 5, &operands.control},
    {0xd9, 3, stored},
    {0xdd, 3, stored},
    {0xdb, 7, stored},
    {0xdf, 7, stored},
    {0xdb, 3, stored},
    {0xdd, 1, stored},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static uint8_t* put(uint8_t* code, const void* bytes, size_t size) {
    memcpy(code, bytes, size);
    return code + size;
}

// MOV RAX, operand; the instruction with [RAX].
static uint8_t* put_with_memory(uint8_t* code, uint8_t opcode, uint8_t extension, const void* operand) {
    code = put(code, (uint8_t[]){0x48, 0xb8}, 2);
    code = put(code, &operand, sizeof operand);
    return put(code, (uint8_t[]){opcode, (uint8_t)(extension << 3)}, 2);
}

static uint8_t* put_random(uint8_t* code) {
    uint64_t random = next_random();
    uint64_t choice = random >> 8;
    switch (random % 8) {
        case 0:
        case 1:
        case 2: {
            const uint8_t* bytes = WITH_REGISTER[choice % COUNT(WITH_REGISTER)];
            return put(code, (uint8_t[]){bytes[0], (uint8_t)(bytes[1] + (random >> 40) % 4)}, 2);
        }
        case 3:
        case 4: return put(code, ALONE[choice % COUNT(ALONE)], 2);
        case 5:  // FLDZ, FLD1; CMP CL, imm8; FCMOVcc ST(0), ST(1)
            code = put(code, (uint8_t[]){0xd9, 0xee, 0xd9, 0xe8, 0x80, 0xf9, (uint8_t)choice}, 7);
            return put(code,
                       (uint8_t[]){(uint8_t)(0xda + (random >> 40) % 2), (uint8_t)(0xc1 + (random >> 41) % 4 * 8)}, 2);
        default: {
            size_t row = choice % COUNT(IN_MEMORY);
            return put_with_memory(code, IN_MEMORY[row].opcode, IN_MEMORY[row].extension, IN_MEMORY[row].operand);
        }
    }
}

static void put_sequence(uint8_t* code) {
    code = put(code, (uint8_t[]){0xb1, (uint8_t)next_random(), 0xdb, 0xe3}, 4);  // MOV CL, imm8; FNINIT
    for (int i = 0; i < 4; i++)
        code = put_with_memory(code, i % 2 ? 0xdd : 0xdb, i % 2 ? 0 : 5,
                               i % 2 ? (void*)&operands.number : (void*)&operands.extended);
    for (int i = 0; i < LENGTH; i++) code = put_random(code);
    code = put(code, (uint8_t[]){0x9c, 0x58, 0x48, 0xa3}, 4);  // PUSHFQ; POP RAX; MOV [flags], RAX
    const void* where = &flags;
    code = put(code, &where, sizeof where);
    code = put_with_memory(code, 0xdd, 6, &saved);  // FNSAVE
    put(code, (uint8_t[]){0xc3}, 1);                // RET
}

static uint64_t mixed(uint64_t hash, const void* bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t*)bytes)[i]) * 0x100000001b3;
    return hash;
}

int main(void) {
    uint8_t* code = mmap(0, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    uint64_t hash = 0xcbf29ce484222325;
    for (int sequence = 0; sequence < SEQUENCES; sequence++) {
        operands.number = NUMBERS[next_random() % NUMBER_COUNT];
        operands.single = (float)NUMBERS[next_random() % NUMBER_COUNT];
        operands.extended = (long double)NUMBERS[next_random() % NUMBER_COUNT] * 3;
        operands.integer = (int32_t)next_random();
        operands.short_integer = (int16_t)next_random();
        operands.long_integer = (int64_t)next_random();
        // All exceptions masked; any rounding; 24, 53 or 64 bits.
        static const uint16_t PRECISIONS[] = {0, 0x200, 0x300};
        operands.control = (uint16_t)(0x7f | PRECISIONS[next_random() % 3] | (next_random() & 0xc00));
        put_sequence(code);
        memset(stored, 0, sizeof stored);
        ((void (*)(void))code)();
        uint16_t words[] = {(uint16_t)saved.control, (uint16_t)saved.status, (uint16_t)saved.tags,
                            (uint16_t)(flags & 0x8c5)};
        hash = mixed(hash, words, sizeof words);
        hash = mixed(hash, saved.registers, sizeof saved.registers);
        hash = mixed(hash, stored, sizeof stored);
        if (sequence % (SEQUENCES / PRINTED) == 0)
            printf("%d: %04x %04x %04x %04x %016lx\n", sequence, words[0], words[1], words[2], words[3], hash);
    }
    return 0;
}
