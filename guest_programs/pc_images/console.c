/* Output by COM1, and the verdicts. */
#include "bare.h"

enum { COM1 = 0x3f8, LINE_STATUS = COM1 + 5, TRANSMITTER_EMPTY = 0x20, EXIT = 0xf4 };

static unsigned failed;

uint8_t in8(uint16_t port) {
    uint8_t value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void out8(uint16_t port, uint8_t value) { __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port)); }

void out16(uint16_t port, uint16_t value) { __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port)); }

void say(const char* text) {
    for (; *text; text++) {
        while (!(in8(LINE_STATUS) & TRANSMITTER_EMPTY)) {
        }
        out8(COM1, (uint8_t)*text);
    }
}

void say_number(uint64_t number) {
    char digits[] = "0x0000000000000000";
    for (int at = 17; at > 1; at--, number >>= 4) digits[at] = "0123456789abcdef"[number & 15];
    say(digits);
}

void check(bool is_right, const char* what, uint64_t found) {
    say(is_right ? "PASS " : "FAIL ");
    say(what);
    if (!is_right) {
        failed++;
        say(": ");
        say_number(found);
    }
    say("\n");
}

void expect(uint64_t found, uint64_t wanted, const char* what) { check(found == wanted, what, found); }

void end(void) {
    say(failed ? "failed\n" : "all passed\n");
    __asm__ volatile("outl %0, %1" : : "a"(failed), "Nd"((uint16_t)EXIT));
    for (;;) {
    }
}
