/* sort [N]: sorts N numbers (100 to 4,000,000) with quicksort, small parts by insertion, and checks the order. */
#include "runtime.h"

enum { MOST = 4000000, SMALL = 12 };

static uint32_t numbers[MOST];

static void fill(uint32_t* values, size_t count) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) values[i] = (uint32_t)(next_random(&state) >> 16);
}

static void insertion_sort(uint32_t* values, size_t count) {
    for (size_t i = 1; i < count; i++) {
        uint32_t value = values[i];
        size_t j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
}

static void swap(uint32_t* a, uint32_t* b) {
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Moves what is less than the pivot to the left; returns the pivot's place. */
__attribute__((noinline)) static size_t partition(uint32_t* values, size_t count) {
    size_t middle = count / 2, last = count - 1;
    if (values[middle] < values[0]) swap(&values[middle], &values[0]);
    if (values[last] < values[0]) swap(&values[last], &values[0]);
    if (values[middle] < values[last]) swap(&values[middle], &values[last]);
    uint32_t pivot = values[last];
    size_t place = 0;
    for (size_t i = 0; i < last; i++)
        if (values[i] < pivot) swap(&values[i], &values[place++]);
    swap(&values[place], &values[last]);
    return place;
}

__attribute__((noinline)) static void quicksort(uint32_t* values, size_t count) {
    if (count <= SMALL) {
        insertion_sort(values, count);
        return;
    }
    size_t place = partition(values, count);
    quicksort(values, place);
    quicksort(values + place + 1, count - place - 1);
}

__attribute__((noinline)) static uint64_t check(const uint32_t* values, size_t count) {
    uint64_t checksum = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && values[i - 1] > values[i]) exit_program(1);
        checksum = checksum * 31 + values[i];
    }
    return checksum;
}

int main(int argc, char** argv) {
    size_t count = argument(argc, argv, 20000, 100, MOST);
    fill(numbers, count);
    quicksort(numbers, count);
    print_checksum("sort", check(numbers, count));
    return 0;
}
