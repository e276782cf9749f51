// Executes instructions on generated inputs and tells what became of registers and memory.
// Standard input: a header and requests. Standard output, by the header's mode:
//   HASHES  per request: the hash of all final states, the same without what is to be ignored, how many faulted
//   EACH    per request and input: the two hashes
//   STATES  per request and input: the state before and the state after
#include "runner.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum mode { HASHES, EACH, STATES };

struct header {
    uint64_t mode, requests;
};

struct hashes {
    uint64_t whole, known;
};

#define MOST_STATE_WORDS 1024
static uint64_t before[MOST_STATE_WORDS], after[MOST_STATE_WORDS];
static struct header header;

#define OUTPUT_BYTES (1 << 16)
static uint8_t output[OUTPUT_BYTES];
static size_t output_size;

void* memcpy(void* to, const void* from, size_t size) {
    for (size_t i = 0; i < size; i++) ((uint8_t*)to)[i] = ((const volatile uint8_t*)from)[i];
    return to;
}

void* memset(void* to, int value, size_t size) {
    for (size_t i = 0; i < size; i++) ((volatile uint8_t*)to)[i] = (uint8_t)value;
    return to;
}

static void leave(int status) { system_call(SYS_exit_group, status, 0, 0, 0, 0, 0); }

static void read_all(void* to, size_t size) {
    for (size_t got = 0; got < size;) {
        long part = system_call(SYS_read, 0, (long)to + (long)got, (long)(size - got), 0, 0, 0);
        if (part <= 0) leave(3);
        got += (size_t)part;
    }
}

static void flush(void) {
    for (size_t done = 0; done < output_size;) {
        long part = system_call(SYS_write, 1, (long)output + (long)done, (long)(output_size - done), 0, 0, 0);
        if (part <= 0) leave(4);
        done += (size_t)part;
    }
    output_size = 0;
}

static void write_all(const void* from, size_t size) {
    if (output_size + size > OUTPUT_BYTES) flush();
    memcpy(output + output_size, from, size);
    output_size += size;
}

static void* map(uint64_t address, size_t size) {
    long flags = MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0);
    long got = system_call(SYS_mmap, (long)address, (long)size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (got < 0 && got > -4096) leave(5);
    return (void*)got;
}

// The state's words for memory: the two parts.
static void copy_memory(uint64_t* to) {
    for (unsigned i = 0; i < CROSSING_WORDS; i++) to[i] = crossing()[i];
    for (unsigned i = 0; i < LAST_WORDS; i++) to[CROSSING_WORDS + i] = last()[i];
}

static void clear_memory(void) {
    for (unsigned i = 0; i < MEMORY_BYTES / 8; i++) ((uint64_t*)MEMORY_BASE)[i] = 0;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

static int ignores_anything(const struct request* request) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < IGNORED; i++) bits |= request->ignored[i].bits;
    return bits != 0;
}

static struct hashes hashed(struct hashes hashes, uint64_t* state, unsigned words, const struct request* request) {
    for (unsigned i = 0; i < words; i++) hashes.whole = mix(hashes.whole, state[i]);
    if (!ignores_anything(request)) return (struct hashes){hashes.whole, hashes.whole};
    uint64_t kept[IGNORED];
    for (unsigned i = 0; i < IGNORED; i++) {
        kept[i] = state[request->ignored[i].word];
        state[request->ignored[i].word] &= ~request->ignored[i].bits;
    }
    for (unsigned i = 0; i < words; i++) hashes.known = mix(hashes.known, state[i]);
    for (unsigned i = IGNORED; i-- > 0;) state[request->ignored[i].word] = kept[i];
    return hashes;
}

static void run(const struct request* request) {
    uint8_t* slot = (uint8_t*)CODE_BASE + (size_t)request->slot * SLOT_BYTES;
    unsigned registers = STATE_WORDS - MEMORY_WORDS;
    int memory = uses_memory(request), all = uses_all_memory(request);
    unsigned words = memory ? STATE_WORDS : registers;
    struct hashes total = {0, 0};
    uint64_t faults = 0;
    clear_memory();
    for (uint32_t input = request->first; input < request->first + request->count; input++) {
        struct random random = {request->seed + input * 0x5851f42d4c957f2d};
        next(&random);
        if (all) clear_memory();
        generate(before, &random, request);
        if (memory) copy_memory(before + registers);
        for (unsigned i = 0; i < registers; i++) after[i] = 0;
        execute(before, after, slot);
        if (memory) copy_memory(after + registers);
        faults += after[0] != 0;
        if (header.mode == HASHES) {
            total = hashed(total, after, words, request);
        } else if (header.mode == EACH) {
            struct hashes each = hashed((struct hashes){0, 0}, after, words, request);
            write_all(&each, sizeof each);
        } else {
            write_all(before, STATE_WORDS * 8);
            write_all(after, STATE_WORDS * 8);
        }
    }
    if (memory)  // what lies outside of the two parts
        for (unsigned i = 0; i < MEMORY_BYTES / 8; i++) {
            total.whole = mix(total.whole, ((uint64_t*)MEMORY_BASE)[i]);
            total.known = mix(total.known, ((uint64_t*)MEMORY_BASE)[i]);
        }
    if (header.mode != HASHES) return;
    write_all(&total, sizeof total);
    write_all(&faults, sizeof faults);
}

__attribute__((used)) void runner_main(void) {
    read_all(&header, sizeof header);
    size_t bytes = header.requests * sizeof(struct request);
    struct request* requests = map(0, bytes);
    read_all(requests, bytes);
    size_t slots = 0;
    for (uint64_t i = 0; i < header.requests; i++)
        if (requests[i].slot >= slots) slots = requests[i].slot + 1;
    size_t code_bytes = (slots * SLOT_BYTES + PAGE - 1) & ~(PAGE - 1);
    map(CODE_BASE, code_bytes);
    map(MEMORY_BASE, MEMORY_BYTES);
    for (uint64_t i = 0; i < header.requests; i++)
        place((uint8_t*)CODE_BASE + (size_t)requests[i].slot * SLOT_BYTES, &requests[i]);
    system_call(SYS_mprotect, (long)CODE_BASE, (long)code_bytes, PROT_READ | PROT_EXEC, 0, 0, 0);
    install_handler();
    for (uint64_t i = 0; i < header.requests; i++) run(&requests[i]);
    flush();
    leave(0);
}
