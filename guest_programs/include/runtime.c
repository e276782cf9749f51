/* See runtime.h. */
#include "runtime.h"

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
    unsigned char* t = to;
    const unsigned char* f = from;
    for (; size >= 8; size -= 8, t += 8, f += 8) __builtin_memcpy(t, f, 8);
    while (size--) *t++ = *f++;
    return to;
}

void* memset(void* to, int byte, size_t size) {
    unsigned char* t = to;
    uint64_t pattern = (unsigned char)byte * 0x0101010101010101u;
    for (; size >= 8; size -= 8, t += 8) __builtin_memcpy(t, &pattern, 8);
    while (size--) *t++ = (unsigned char)byte;
    return to;
}

static size_t length(const char* text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

unsigned argument(int argc, char** argv, unsigned otherwise, unsigned least, unsigned most) {
    if (argc < 2) return otherwise;
    uint64_t value = 0;
    const char* digit = argv[1];
    for (; *digit >= '0' && *digit <= '9' && value <= most; digit++) value = value * 10 + (unsigned)(*digit - '0');
    if (digit == argv[1] || *digit || value < least || value > most) {
        static const char message[] = ": the size must be a number within the program's range, see its source\n";
        write_bytes(2, argv[0], length(argv[0]));
        write_bytes(2, message, sizeof message - 1);
        exit_program(2);
    }
    return (unsigned)value;
}

void print_checksum(const char* name, uint64_t checksum) {
    char line[80];
    size_t n = 0;
    while (*name && n < 60) line[n++] = *name++;
    line[n++] = ' ';
    for (int shift = 60; shift >= 0; shift -= 4) line[n++] = "0123456789abcdef"[checksum >> shift & 15];
    line[n++] = '\n';
    write_bytes(1, line, n);
}

uint64_t next_random(uint64_t* state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}
