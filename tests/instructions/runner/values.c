// Values that instructions find interesting: edges, and random ones near enough to each other to interact.
#include "runner.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const uint64_t INTEGERS[] = {
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0xfffffffffffffffe,
    0xffffffff80000000,
    0xffffffffffff8000,
    0xffffffffffffff80,
    0x5555555555555555,
    0xaaaaaaaaaaaaaaaa,
};

static const uint64_t DOUBLES[] = {
    0x0000000000000000, 0x3ff0000000000000, 0x0000000000000001, 0x000fffffffffffff, 0x0010000000000000,
    0x0010000000000001, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001,
    0x7ff4000000000000, 0x7ff8000000000123, 0x7fffffffffffffff, 0x3fe0000000000000, 0x3ff8000000000000,
    0x3fefffffffffffff, 0x3ff0000000000001, 0x4004000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
    0x41efffffffe00000, 0x41f0000000000000, 0x43e0000000000000, 0x43dfffffffffffff, 0x43f0000000000000,
    0x4330000000000000, 0x433fffffffffffff, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000,
    0x3690000000000000, 0x36a0000000000000, 0x380fffffc0000000, 0x3800000000000000, 0x0008000000000000,
    0x400921fb54442d18, 0x40dfffc000000000, 0x40e0000000000000,
};

static const uint32_t FLOATS[] = {
    0x00000000, 0x3f800000, 0x00000001, 0x007fffff, 0x00800000, 0x00800001, 0x7f7fffff, 0x7f800000, 0x7fc00000,
    0x7f800001, 0x7fa00000, 0x7fc00123, 0x7fffffff, 0x3f000000, 0x3fc00000, 0x3f7fffff, 0x3f800001, 0x40200000,
    0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0x5f000000, 0x5effffff, 0x5f800000, 0x4b000000, 0x4b7fffff,
    0x00400000, 0x40490fdb, 0x46fffe00, 0x47000000, 0x1f800000, 0x5f7fffff,
};

uint64_t integer_value(struct random* random) {
    uint64_t bits = next(random), choice = bits & 7;
    bits = next(random);
    switch (choice) {
        case 0:
        case 1: return INTEGERS[below(random, COUNT(INTEGERS))];
        case 2: return bits & 0x3f;
        case 3: return bits & 0xffffffff;
        case 4: return (uint64_t)((int64_t)bits >> (below(random, 64)));
        case 5: return 1UL << (bits & 63);
        default: return bits;
    }
}

uint64_t double_value(struct random* random) {
    uint64_t bits = next(random), choice = bits & 7, sign = bits & 0x8000000000000000;
    bits = next(random);
    switch (choice) {
        case 0:
        case 1:
        case 2: return DOUBLES[below(random, COUNT(DOUBLES))] | sign;
        case 3: return bits;
        case 4: return sign | (bits & 0x000fffffffffffff) | (1023 + below(random, 64)) << 52;  // to 2^64
        case 5: return sign | (bits & 0x000ffff000000000) | (1013 + below(random, 20)) << 52;  // few digits
        case 6: return sign | (bits & 0x000fffffffffffff) | below(random, 3) << 52;            // tiny
        default: return sign | (bits & 0x000fffffffffffff) | (1013 + below(random, 20)) << 52;
    }
}

static uint32_t float_value(struct random* random) {
    uint64_t wide = next(random), choice = wide & 7;
    uint32_t sign = (uint32_t)(wide >> 32) & 0x80000000, bits = (uint32_t)next(random);
    switch (choice) {
        case 0:
        case 1:
        case 2: return FLOATS[below(random, COUNT(FLOATS))] | sign;
        case 3: return bits;
        case 4: return sign | (bits & 0x007fffff) | (uint32_t)(127 + below(random, 64)) << 23;
        case 5: return sign | (bits & 0x007ff000) | (uint32_t)(122 + below(random, 10)) << 23;
        case 6: return sign | (bits & 0x007fffff) | (uint32_t)below(random, 3) << 23;
        default: return sign | (bits & 0x007fffff) | (uint32_t)(122 + below(random, 10)) << 23;
    }
}

uint64_t two_floats(struct random* random) {
    uint64_t low = float_value(random);
    return (uint64_t)float_value(random) << 32 | low;
}

// Few different bytes, with zeros: strings, and comparisons that come out equal.
static uint64_t byte_values(struct random* random) {
    static const uint8_t BYTES[] = {0, 1, 2, 'a', 'b', 0x7f, 0x80, 0xff};
    uint64_t choices = next(random), value = 0;
    for (unsigned i = 0; i < 8; i++) value = value << 8 | BYTES[choices >> 4 * i & 7];
    return value;
}

uint64_t lane_value(struct random* random, enum lane lane) {
    switch (lane) {
        case LANE_FLOAT: return two_floats(random);
        case LANE_DOUBLE: return double_value(random);
        case LANE_INTEGER: return integer_value(random);
        case LANE_BYTES: return byte_values(random);
        default: return next(random);
    }
}
