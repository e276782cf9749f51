/* embedded_mix [N]: N rounds (1 to 100,000) of what small machines do: a linked list is searched and sorted, a matrix
 * of integers multiplied, numbers are recognized in text by a state machine, and everything goes into a checksum. */
#include "runtime.h"

enum { NODES = 128, ORDER = 12, MOST = 100000 };

static struct node {
    struct node* next;
    int16_t key, payload;
} nodes[NODES];
static int16_t a[ORDER][ORDER], b[ORDER][ORDER];
static int32_t c[ORDER][ORDER];

static uint16_t crc16(uint16_t crc, uint32_t value, int bits) {
    for (int bit = 0; bit < bits; bit++) {
        uint16_t carry = (uint16_t)((crc ^ value) & 1);
        value >>= 1;
        crc >>= 1;
        if (carry) crc ^= 0xa001;
    }
    return crc;
}

__attribute__((noinline)) static struct node* make_list(uint64_t* state) {
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : 0;
        nodes[i].key = (int16_t)(next_random(state) >> 20);
        nodes[i].payload = (int16_t)i;
    }
    return nodes;
}

__attribute__((noinline)) static struct node* reverse(struct node* list) {
    struct node* reversed = 0;
    while (list) {
        struct node* next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

static struct node* merge(struct node* x, struct node* y) {
    struct node head = {0, 0, 0};
    struct node* last = &head;
    while (x && y) {
        if (x->key <= y->key) {
            last = last->next = x;
            x = x->next;
        } else {
            last = last->next = y;
            y = y->next;
        }
    }
    last->next = x ? x : y;
    return head.next;
}

__attribute__((noinline)) static struct node* sort(struct node* list, unsigned count) {
    if (count < 2) return list;
    struct node* middle = list;
    for (unsigned i = 1; i < count / 2; i++) middle = middle->next;
    struct node* rest = middle->next;
    middle->next = 0;
    return merge(sort(list, count / 2), sort(rest, count - count / 2));
}

__attribute__((noinline)) static int find(const struct node* list, int16_t payload) {
    int steps = 0;
    for (; list && list->payload != payload; list = list->next) steps++;
    return steps;
}

__attribute__((noinline)) static int32_t multiply(int16_t seed) {
    int32_t sum = 0;
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) a[i][j] = (int16_t)(seed + i * j), b[i][j] = (int16_t)(seed - i + j);
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) {
            c[i][j] = 0;
            for (int k = 0; k < ORDER; k++) c[i][j] += a[i][k] * b[k][j];
            sum += c[i][j] >> 3;
        }
    return sum;
}

enum state { START, SIGN, DIGITS, POINT, FRACTION, EXPONENT, BAD, STATES };

/* How many numbers of each kind there are in the text. */
__attribute__((noinline)) static uint32_t recognize(const char* text) {
    uint32_t ends[STATES] = {0};
    enum state state = START;
    for (;; text++) {
        char character = *text;
        if (character == ',' || character == 0) {
            ends[state]++;
            state = START;
            if (!character) break;
            continue;
        }
        int digit = character >= '0' && character <= '9';
        switch (state) {
            case START: state = digit ? DIGITS : character == '-' || character == '+' ? SIGN : BAD; break;
            case SIGN: state = digit ? DIGITS : BAD; break;
            case DIGITS: state = digit ? DIGITS : character == '.' ? POINT : character == 'e' ? EXPONENT : BAD; break;
            case POINT:
            case FRACTION: state = digit ? FRACTION : character == 'e' ? EXPONENT : BAD; break;
            case EXPONENT: state = digit || character == '-' ? EXPONENT : BAD; break;
            default: break;
        }
    }
    uint32_t sum = 0;
    for (int i = 0; i < STATES; i++) sum = sum * 7 + ends[i];
    return sum;
}

int main(int argc, char** argv) {
    static const char text[] =
        "5012,1234,-874,+122,35.54400,.1234500,-110.700,+0.64400,5.500e-3,-.123e-2,-87e+832,T0.3e-1F";
    unsigned rounds = argument(argc, argv, 40, 1, MOST);
    uint64_t state = 88172645463325252u;
    uint16_t crc = 0xffff;
    for (unsigned round = 0; round < rounds; round++) {
        struct node* list = sort(reverse(make_list(&state)), NODES);
        for (int16_t payload = 0; payload < NODES; payload += 16) crc = crc16(crc, (uint32_t)find(list, payload), 16);
        crc = crc16(crc, (uint32_t)multiply((int16_t)round), 32);
        crc = crc16(crc, recognize(text), 32);
    }
    print_checksum("embedded_mix", crc);
    return 0;
}
