/* sha256 [N]: the SHA-256 (FIPS 180-4) of N KiB (1 to 65,536) of pseudo-random bytes; prints its first eight bytes. */
#include "runtime.h"

static uint32_t constants[64]; /* fractional parts of the cube roots of the first 64 primes */
static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* The first 32 bits behind the point of the cube root of n < 512: floor(cbrt(n) * 2^32) modulo 2^32, by bisection. */
static uint32_t cube_root_fraction(uint32_t n) {
    uint64_t low = 0, high = (uint64_t)8 << 32;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2; /* its cube has at most 105 bits */
        if ((unsigned __int128)middle * middle * middle > (unsigned __int128)n << 96)
            high = middle;
        else
            low = middle;
    }
    return (uint32_t)low;
}

static void make_constants(void) {
    int found = 0;
    for (uint32_t n = 2; found < 64; n++) {
        uint32_t divisor = 2;
        while (n % divisor) divisor++;
        if (divisor == n) constants[found++] = cube_root_fraction(n);
    }
}

static inline uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

__attribute__((noinline)) static void expand(uint32_t schedule[64], const uint8_t* block) {
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = schedule[i - 15], b = schedule[i - 2];
        schedule[i] = schedule[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + schedule[i - 7] +
                      (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

__attribute__((noinline)) static void compress(uint32_t state[8], const uint8_t* block) {
    uint32_t schedule[64], s[8];
    expand(schedule, block);
    for (int i = 0; i < 8; i++) s[i] = state[i];
    for (int i = 0; i < 64; i++) {
        uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t first =
            s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choose + constants[i] + schedule[i];
        uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
        s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + first;
        s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = first + second;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

static void digest(uint32_t state[8], const uint8_t* bytes, size_t size) {
    uint8_t last[64];
    size_t done = 0;
    for (int i = 0; i < 8; i++) state[i] = initial[i];
    for (; size - done >= 64; done += 64) compress(state, bytes + done);
    size_t rest = size - done;
    memset(last, 0, sizeof last);
    memcpy(last, bytes + done, rest);
    last[rest] = 0x80;
    if (rest >= 56) {
        compress(state, last);
        memset(last, 0, sizeof last);
    }
    for (int i = 0; i < 8; i++) last[63 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    compress(state, last);
}

int main(int argc, char** argv) {
    static uint8_t block[1024];
    uint32_t state[8];
    uint64_t random = 88172645463325252u, checksum = 0;
    unsigned kilobytes = argument(argc, argv, 128, 1, 65536);
    make_constants();
    digest(state, (const uint8_t*)"abc", 3);
    if (state[0] != 0xba7816bf || state[7] != 0xf20015ad) return 1; /* FIPS 180-4's example */
    for (unsigned k = 0; k < kilobytes; k++) {
        for (int i = 0; i < 1024; i++) block[i] = (uint8_t)(next_random(&random) >> 24);
        digest(state, block, sizeof block);
        checksum = checksum * 31 + ((uint64_t)state[0] << 32 | state[1]);
    }
    print_checksum("sha256", checksum);
    return 0;
}
