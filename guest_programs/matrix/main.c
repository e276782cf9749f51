/* matrix [N]: multiplies two matrices of doubles, N rows and columns (8 to 512), in the order of the textbook's three
 * loops. */
#include "runtime.h"

enum { MOST = 512 };

static double left[MOST * MOST], right[MOST * MOST], product[MOST * MOST];

__attribute__((noinline)) static void fill(double* matrix, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) matrix[i] = (double)(int)(next_random(&seed) % 64) - 32;
}

__attribute__((noinline)) static void multiply(size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) sum += left[i * n + k] * right[k * n + j];
            product[i * n + j] = sum;
        }
}

int main(int argc, char** argv) {
    size_t n = argument(argc, argv, 48, 8, MOST);
    fill(left, n * n, 88172645463325252u);
    fill(right, n * n, 1181783497276652981u);
    multiply(n);
    uint64_t checksum = 0;
    for (size_t i = 0; i < n * n; i++) checksum = checksum * 31 + (uint64_t)(int64_t)product[i];
    print_checksum("matrix", checksum);
    return 0;
}
