/* Output by the PL011, and the verdicts. */
#include "bare.h"

unsigned failed;

void say(const char* text) {
    for (; *text; text++) {
        while (at(board.uart)[0x18 / 4] & 1 << 5) { /* FR.TXFF */
        }
        at(board.uart)[0] = (uint8_t)*text;
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

void expect(int64_t found, int64_t wanted, const char* what) { check(found == wanted, what, (uint64_t)found); }

/* What the compiler may call */
void* memset(void* to, int byte, size_t size) {
    for (uint8_t* at = to; size; size--) *at++ = (uint8_t)byte;
    return to;
}
