/* compression [N]: makes N KiB (1 to 4,096) of text, packs it with an LZ77 of our own (hash table, longest match of the
 * last few), unpacks it again and compares. */
#include "runtime.h"

enum {
    MOST = 4096 * 1024,
    HASH_BITS = 14,
    CHAIN_LIMIT = 16,
    WINDOW = 1 << 15,
    SHORTEST = 4,
    LONGEST = 130,
};

static uint8_t text[MOST], packed[MOST + MOST / 64 + 64], unpacked[MOST];
static int32_t newest[1 << HASH_BITS], older[WINDOW];

/* Words of two to nine letters, the frequent ones more often. */
static void write_text(uint8_t* to, size_t size) {
    static uint8_t words[256][10];
    uint64_t random = 88172645463325252u;
    for (int w = 0; w < 256; w++) {
        int letters = 2 + (int)(next_random(&random) % 8);
        words[w][0] = (uint8_t)letters;
        for (int i = 1; i <= letters; i++) words[w][i] = (uint8_t)('a' + next_random(&random) % 26);
    }
    size_t n = 0;
    while (n < size) {
        uint64_t r = next_random(&random);
        const uint8_t* word = words[(r & 255) * (r >> 8 & 255) >> 8];
        for (int i = 1; i <= word[0] && n < size; i++) to[n++] = word[i];
        if (n < size) to[n++] = r >> 16 & 15 ? ' ' : '\n';
    }
}

static inline uint32_t hash(const uint8_t* at) {
    uint32_t four;
    memcpy(&four, at, 4);
    return four * 2654435761u >> (32 - HASH_BITS);
}

__attribute__((noinline)) static size_t match_length(const uint8_t* a, const uint8_t* b, size_t limit) {
    size_t n = 0;
    while (n < limit && a[n] == b[n]) n++;
    return n;
}

__attribute__((noinline)) static size_t longest_match(const uint8_t* from, size_t at, size_t limit, size_t* distance) {
    size_t best = 0;
    int32_t candidate = newest[hash(from + at)];
    for (int tries = 0; tries < CHAIN_LIMIT && candidate >= 0 && at - (size_t)candidate < WINDOW; tries++) {
        size_t length = match_length(from + candidate, from + at, limit);
        if (length > best) {
            best = length;
            *distance = at - (size_t)candidate;
        }
        candidate = older[candidate % WINDOW];
    }
    return best;
}

static void remember(const uint8_t* from, size_t at) {
    uint32_t h = hash(from + at);
    older[at % WINDOW] = newest[h];
    newest[h] = (int32_t)at;
}

/* A byte below 128: so many literals and one; above: a match of that - 128 + SHORTEST, at the distance that follows. */
__attribute__((noinline)) static size_t pack(uint8_t* to, const uint8_t* from, size_t size) {
    size_t out = 0, literals = 0, at = 0;
    for (int i = 0; i < 1 << HASH_BITS; i++) newest[i] = -1;
    while (at < size) {
        size_t distance = 0, length = 0, limit = size - at < LONGEST ? size - at : LONGEST;
        if (limit >= SHORTEST) length = longest_match(from, at, limit, &distance);
        size_t step = length >= SHORTEST ? length : 1;
        if (length >= SHORTEST || literals == 128) {
            if (literals) {
                to[out++] = (uint8_t)(literals - 1);
                memcpy(to + out, from + at - literals, literals);
                out += literals;
                literals = 0;
            }
        }
        if (length >= SHORTEST) {
            to[out++] = (uint8_t)(128 + length - SHORTEST);
            to[out++] = (uint8_t)distance;
            to[out++] = (uint8_t)(distance >> 8);
        } else {
            literals++;
        }
        for (; step; step--, at++)
            if (size - at >= 4) remember(from, at);
    }
    if (literals) {
        to[out++] = (uint8_t)(literals - 1);
        memcpy(to + out, from + at - literals, literals);
        out += literals;
    }
    return out;
}

__attribute__((noinline)) static size_t unpack(uint8_t* to, const uint8_t* from, size_t size) {
    size_t out = 0;
    for (size_t in = 0; in < size;) {
        uint8_t head = from[in++];
        if (head < 128) {
            memcpy(to + out, from + in, head + 1u);
            out += head + 1u;
            in += head + 1u;
        } else {
            size_t length = head - 128u + SHORTEST, distance = from[in] | (size_t)from[in + 1] << 8;
            in += 2;
            for (; length; length--, out++) to[out] = to[out - distance];
        }
    }
    return out;
}

int main(int argc, char** argv) {
    size_t size = (size_t)argument(argc, argv, 64, 1, 4096) * 1024;
    write_text(text, size);
    size_t small = pack(packed, text, size);
    if (unpack(unpacked, packed, small) != size) return 1;
    if (match_length(text, unpacked, size) != size) return 1;
    uint64_t checksum = small;
    for (size_t i = 0; i < small; i++) checksum = checksum * 31 + packed[i];
    print_checksum("compression", checksum);
    return 0;
}
