/* textbook EFFECT: a small loop nest that a cache, a predictor or a store buffer makes fast or slow; see
 * docs/effects.md. Each effect comes in two forms which compute the same. */
#include "runtime.h"

enum { ORDER = 128, SIDE = 1024, BYTES = 1 << 15, RECORDS = 1 << 15, PASSES = 20, STEPS = 200000 };

/* Keeps a branch a branch. */
#define BARRIER __asm__ volatile("" ::: "memory")
/* Hides from the compiler what an array holds. */
#define HIDE(pointer) __asm__("" : "+r"(pointer))

static double left[ORDER][ORDER], right[ORDER][ORDER], product[ORDER][ORDER];
static uint32_t grid[SIDE][SIDE];
static uint8_t values[BYTES];
static struct record {
    uint32_t key, other[15];
} records[RECORDS];
static uint32_t keys[RECORDS];
static _Alignas(4096) uint8_t buffer[3 * 4096];

static uint64_t product_sum(void) {
    double sum = 0;
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) sum += product[i][j];
    return (uint64_t)sum;
}

static void fill_matrices(void) {
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) left[i][j] = i + j, right[i][j] = i - j;
}

/* The inner loop goes down a column of `right`. */
static uint64_t matrix_ijk(void) {
    fill_matrices();
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) {
            double sum = 0;
            for (int k = 0; k < ORDER; k++) sum += left[i][k] * right[k][j];
            product[i][j] = sum;
        }
    return product_sum();
}

/* ... along rows. */
static uint64_t matrix_ikj(void) {
    fill_matrices();
    for (int i = 0; i < ORDER; i++)
        for (int k = 0; k < ORDER; k++)
            for (int j = 0; j < ORDER; j++) product[i][j] += left[i][k] * right[k][j];
    return product_sum();
}

/* ... down columns of both. */
static uint64_t matrix_jki(void) {
    fill_matrices();
    for (int j = 0; j < ORDER; j++)
        for (int k = 0; k < ORDER; k++)
            for (int i = 0; i < ORDER; i++) product[i][j] += left[i][k] * right[k][j];
    return product_sum();
}

static uint64_t rows(void) {
    uint64_t sum = 0;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) sum += grid[row][column]++;
    return sum;
}

static uint64_t columns(void) {
    uint64_t sum = 0;
    for (int column = 0; column < SIDE; column++)
        for (int row = 0; row < SIDE; row++) sum += grid[row][column]++;
    return sum;
}

static uint64_t sum_of_large(void) {
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < BYTES; i++)
            if (values[i] >= 128) {
                BARRIER;
                sum += values[i];
            }
    return sum;
}

static void fill_values(void) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < BYTES; i++) values[i] = (uint8_t)(next_random(&state) >> 32);
}

static uint64_t unsorted(void) {
    fill_values();
    return sum_of_large();
}

static uint64_t sorted(void) {
    unsigned counts[256] = {0};
    fill_values();
    for (int i = 0; i < BYTES; i++) counts[values[i]]++;
    for (int value = 0, i = 0; value < 256; value++)
        for (unsigned n = 0; n < counts[value]; n++) values[i++] = (uint8_t)value;
    return sum_of_large();
}

static uint64_t array_of_structs(void) {
    struct record* all = records;
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        HIDE(all);
        for (int i = 0; i < RECORDS; i++) sum += all[i].key + (unsigned)pass;
    }
    return sum;
}

static uint64_t struct_of_arrays(void) {
    uint32_t* all = keys;
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        HIDE(all);
        for (int i = 0; i < RECORDS; i++) sum += all[i] + (unsigned)pass;
    }
    return sum;
}

/* Eight bytes are stored and loaded again at once: the store buffer has them. */
static uint64_t forwarded(void) {
    volatile uint64_t* whole = (volatile uint64_t*)buffer;
    uint64_t value = 1;
    for (int i = 0; i < STEPS; i++) {
        *whole = value;
        value = *whole + 1;
    }
    return value;
}

/* The eight bytes come from two stores: no one store has them all. */
static uint64_t forward_blocked(void) {
    volatile uint32_t* half = (volatile uint32_t*)buffer;
    volatile uint64_t* whole = (volatile uint64_t*)buffer;
    uint64_t value = 1;
    for (int i = 0; i < STEPS; i++) {
        half[0] = (uint32_t)value;
        half[1] = 0;
        value = *whole + 1;
    }
    return value;
}

/* Each load follows a store to another page, at another offset or, in the second form, at the same one, and tells where
 * the next one reads. */
static uint64_t pages(size_t offset) {
    volatile uint64_t* to = (volatile uint64_t*)buffer;
    volatile uint64_t* from = (volatile uint64_t*)(buffer + 4096 + offset);
    uint64_t zero = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        to[i & 63] = i;
        zero = from[(i + zero) & 63];
    }
    return zero;
}

static uint64_t apart(void) { return pages(1024); }
static uint64_t aliased(void) { return pages(0); }

static const struct {
    const char* name;
    uint64_t (*run)(void);
} effects[] = {
    {"matrix-ijk", matrix_ijk},
    {"matrix-ikj", matrix_ikj},
    {"matrix-jki", matrix_jki},
    {"rows", rows},
    {"columns", columns},
    {"sorted", sorted},
    {"unsorted", unsorted},
    {"array-of-structs", array_of_structs},
    {"struct-of-arrays", struct_of_arrays},
    {"forwarded", forwarded},
    {"forward-blocked", forward_blocked},
    {"apart", apart},
    {"aliased", aliased},
};

static int same(const char* a, const char* b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

int main(int argc, char** argv) {
    const char* wanted = argc > 1 ? argv[1] : effects[0].name;
    for (unsigned i = 0; i < sizeof effects / sizeof effects[0]; i++)
        if (same(effects[i].name, wanted)) {
            print_checksum(wanted, effects[i].run());
            return 0;
        }
    static const char usage[] =
        "usage: textbook matrix-ijk|matrix-ikj|matrix-jki|rows|columns|sorted|unsorted|array-of-structs|"
        "struct-of-arrays|forwarded|forward-blocked|apart|aliased\n";
    write_bytes(2, usage, sizeof usage - 1);
    return 2;
}
