/* interpreter [N]: a small stack machine runs a prime sieve to 4,096 and the naive Fibonacci of 16, N times (1 to
 * 1,000). */
#include "runtime.h"

enum opcode {
    PUSH,  /* a constant follows */
    LOAD,  /* push variable n of this call */
    STORE, /* pop into it */
    FETCH, /* pop an index, push memory[index] */
    PUT,   /* pop a value and an index */
    ADD,
    SUBTRACT,
    LESS,
    JUMP,   /* to the place that follows */
    UNLESS, /* pop; jump if zero */
    CALL,   /* function at the place that follows, one argument on the stack */
    RETURN, /* one result on the stack */
    HALT,
};

enum { MEMORY = 4096, STACK = 1024, CALLS = 64, VARIABLES = 4 };

/* fibonacci(n): if n < 2 return n; return fibonacci(n - 1) + fibonacci(n - 2). main: push 16; call; halt. */
static const int32_t fibonacci[] = {
    PUSH,          16, CALL, 5, HALT,
    /* 5 */ STORE, 0,  LOAD, 0, PUSH,     2,    LESS, UNLESS, 17, LOAD, 0, RETURN,
    /* 17 */ LOAD, 0,  PUSH, 1, SUBTRACT, CALL, 5,    LOAD,   0,  PUSH, 2, SUBTRACT, CALL, 5, ADD, RETURN,
};

/* Variables: 0 candidate, 1 multiple, 2 primes found. memory[i] is 1 when i is known to be composite. */
static const int32_t sieve[] = {
    PUSH,
    0,
    STORE,
    2,
    PUSH,
    2,
    STORE,
    0,
    /* 8: while candidate < MEMORY */ LOAD,
    0,
    PUSH,
    MEMORY,
    LESS,
    UNLESS,
    66,
    /* 15: unless memory[candidate] */ LOAD,
    0,
    FETCH,
    UNLESS,
    22,
    JUMP,
    57,
    /* 22: found++, multiple = candidate + candidate */ LOAD,
    2,
    PUSH,
    1,
    ADD,
    STORE,
    2,
    LOAD,
    0,
    LOAD,
    0,
    ADD,
    STORE,
    1,
    /* 36: while multiple < MEMORY */ LOAD,
    1,
    PUSH,
    MEMORY,
    LESS,
    UNLESS,
    57,
    /* 43: memory[multiple] = 1 */ LOAD,
    1,
    PUSH,
    1,
    PUT,
    /* 48: multiple += candidate */ LOAD,
    1,
    LOAD,
    0,
    ADD,
    STORE,
    1,
    JUMP,
    36,
    /* 57: candidate++ */ LOAD,
    0,
    PUSH,
    1,
    ADD,
    STORE,
    0,
    JUMP,
    8,
    /* 66: the result */ LOAD,
    2,
    HALT,
};

static int32_t memory[MEMORY], stack[STACK], variables[CALLS][VARIABLES];
static int32_t return_to[CALLS];

__attribute__((noinline)) static int32_t run(const int32_t* code) {
    int32_t* top = stack; /* points behind the topmost */
    int32_t place = 0, depth = 0;
    for (;;) {
        switch ((enum opcode)code[place++]) {
            case PUSH: *top++ = code[place++]; break;
            case LOAD: *top++ = variables[depth][code[place++]]; break;
            case STORE: variables[depth][code[place++]] = *--top; break;
            case FETCH: top[-1] = memory[top[-1]]; break;
            case PUT: top -= 2, memory[top[0]] = top[1]; break;
            case ADD: top--, top[-1] += top[0]; break;
            case SUBTRACT: top--, top[-1] -= top[0]; break;
            case LESS: top--, top[-1] = top[-1] < top[0]; break;
            case JUMP: place = code[place]; break;
            case UNLESS: place = *--top ? place + 1 : code[place]; break;
            case CALL: return_to[depth++] = place + 1, place = code[place]; break;
            case RETURN: place = return_to[--depth]; break;
            case HALT: return *--top;
        }
    }
}

int main(int argc, char** argv) {
    unsigned rounds = argument(argc, argv, 2, 1, 1000);
    uint64_t checksum = 0;
    for (unsigned r = 0; r < rounds; r++) {
        memset(memory, 0, sizeof memory);
        int32_t primes = run(sieve), number = run(fibonacci);
        if (primes != 564 || number != 987) return 1; /* primes below 4,096; Fibonacci of 16 */
        checksum = checksum * 31 + (uint64_t)primes * 1000 + (uint64_t)number;
    }
    print_checksum("interpreter", checksum);
    return 0;
}
