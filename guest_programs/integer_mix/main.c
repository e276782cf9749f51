/* integer_mix [N]: what embedded benchmarks are made of, N rounds (1 to 100,000): a linked list that is searched,
 * reversed and sorted, a small integer matrix, a state machine that reads numbers, and a CRC over the results. */
#include "runtime.h"

enum { NODES = 64, SIDE = 12 };

struct node {
    struct node* next;
    int16_t key, value;
};

static struct node nodes[NODES];
static int16_t left[SIDE][SIDE], right[SIDE][SIDE];
static int32_t product[SIDE][SIDE];
static const char numbers[] = "5012,1234,-874,+122,0x7f,35.54400,.1234500,-110.700,+0.64400,T0.3e-1F,-.123,1e5,,99";

__attribute__((noinline)) static uint16_t crc16(uint16_t crc, uint32_t value) {
    for (int bit = 0; bit < 32; bit++, value >>= 1) {
        int carry = (crc ^ value) & 1;
        crc >>= 1;
        if (carry) crc ^= 0xA001;
    }
    return crc;
}

static struct node* make_list(unsigned seed) {
    uint64_t random = 88172645463325252u + seed;
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : NULL;
        nodes[i].key = (int16_t)(next_random(&random) & 0x3ff);
        nodes[i].value = (int16_t)i;
    }
    return nodes;
}

__attribute__((noinline)) static const struct node* find(const struct node* list, int16_t key) {
    while (list && list->key != key) list = list->next;
    return list;
}

__attribute__((noinline)) static struct node* reverse(struct node* list) {
    struct node* reversed = NULL;
    while (list) {
        struct node* next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

static struct node* merge(struct node* a, struct node* b) {
    struct node head = {NULL, 0, 0}, *last = &head;
    while (a && b) {
        struct node** smaller = a->key <= b->key ? &a : &b;
        last->next = *smaller;
        last = *smaller;
        *smaller = (*smaller)->next;
    }
    last->next = a ? a : b;
    return head.next;
}

__attribute__((noinline)) static struct node* sort(struct node* list) {
    if (!list || !list->next) return list;
    struct node *slow = list, *fast = list->next;
    while (fast && fast->next) slow = slow->next, fast = fast->next->next;
    struct node* second = slow->next;
    slow->next = NULL;
    struct node* first = sort(list);
    return merge(first, sort(second));
}

__attribute__((noinline)) static uint16_t list_work(unsigned round, uint16_t crc) {
    struct node* list = reverse(make_list(round));
    for (int16_t key = 0; key < 16; key++) {
        const struct node* found = find(list, (int16_t)(key * 61));
        crc = crc16(crc, found ? (uint32_t)found->value : 0xffff);
    }
    list = sort(list);
    for (; list; list = list->next) crc = crc16(crc, (uint32_t)list->key << 16 | (uint16_t)list->value);
    return crc;
}

__attribute__((noinline)) static uint16_t matrix_work(unsigned round, uint16_t crc) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            left[i][j] = (int16_t)(i * j + (int)round);
            right[i][j] = (int16_t)(i - j - (int)round);
        }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            int32_t sum = 0;
            for (int k = 0; k < SIDE; k++) sum += left[i][k] * right[k][j];
            product[i][j] = (sum & 0xff) + (sum >> 5 & 0x7f);
        }
    int32_t sum = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) sum += product[i][j] > product[j][i] ? product[i][j] : 1;
    return crc16(crc, (uint32_t)sum);
}

enum state { START, SIGN, INTEGER, FRACTION, EXPONENT, INVALID, STATES };

static inline int is_digit(char c) { return c >= '0' && c <= '9'; }

__attribute__((noinline)) static enum state next_state(enum state state, char c) {
    switch (state) {
        case START:
            if (c == '+' || c == '-') return SIGN;
            /* fall through */
        case SIGN:
            if (is_digit(c)) return INTEGER;
            return c == '.' ? FRACTION : INVALID;
        case INTEGER:
            if (is_digit(c)) return INTEGER;
            if (c == '.') return FRACTION;
            return c == 'e' ? EXPONENT : INVALID;
        case FRACTION:
            if (is_digit(c)) return FRACTION;
            return c == 'e' ? EXPONENT : INVALID;
        case EXPONENT: return is_digit(c) || c == '-' ? EXPONENT : INVALID;
        default: return INVALID;
    }
}

__attribute__((noinline)) static uint16_t state_work(unsigned round, uint16_t crc) {
    uint32_t visits[STATES] = {0};
    enum state state = START;
    for (size_t i = 0; i < sizeof numbers - 1; i++) {
        char c = numbers[i];
        if (c == ',') {
            visits[state]++;
            state = START;
        } else {
            state = next_state(state, (round + i) % 29 ? c : 'x');
        }
    }
    for (int s = 0; s < STATES; s++) crc = crc16(crc, visits[s]);
    return crc;
}

int main(int argc, char** argv) {
    unsigned rounds = argument(argc, argv, 60, 1, 100000);
    uint16_t crc = 0xffff;
    for (unsigned round = 0; round < rounds; round++) {
        crc = list_work(round, crc);
        crc = matrix_work(round, crc);
        crc = state_work(round, crc);
    }
    print_checksum("integer_mix", crc);
    return 0;
}
