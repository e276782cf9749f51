/* Counts what a program executes under qemu-user: one row per instruction that was translated.
 *
 * Loaded by tests/reference.py with -plugin counts.so,out=FILE[,memory=on][,trace=on]. Debian ships no
 * qemu-plugin.h, so the few functions of QEMU's plugin interface (version 1, docs/devel/tcg-plugins.rst) that are used
 * here are declared here.
 *
 * Each process writes FILE.<pid> when it exits, with lines
 *   i <address> <bytes in hex> <executed> <continued> <left> <loads> <stores>
 * executed   how often it started. A REP string instruction starts once an iteration, and once more to find RCX zero.
 * continued  how many of these were REP starting over: executed - continued is how often it retired.
 * left       how often the next block did not start right behind it: for a conditional branch, how often it was taken.
 *            Counted for the last instruction of a block only.
 * loads      executions that read memory, stores: that wrote it (with memory=on).
 * and the process's mappings, as m <line of /proc/self/maps>, and when it made each system call for the first time, as
 *   s <number> <seconds since 1970>
 * With trace=on it also writes FILE.<pid>.trace: everything that it executes and accesses, in order, as struct event.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t; /* the access's direction is in bits 16 (read) and 17 (write) */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CALLBACK_NO_REGISTERS = 0 };
enum { INLINE_ADD_U64 = 0 };
enum { MEMORY_READ = 1, MEMORY_WRITE = 2 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t,
                                                   uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*, void (*)(unsigned, void*), int, void*);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*, int, void*, uint64_t);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void*), int, int, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn*, void (*)(unsigned, void*), int, void*);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);

enum { MAX_BYTES = 16, BUCKETS = 1 << 16, SYSTEM_CALLS = 512 };

struct instruction {
    struct instruction* next; /* in its bucket */
    uint64_t address;
    uint8_t bytes[MAX_BYTES];
    size_t size;
    uint64_t executed, continued, left, loads, stores;
    uint64_t last_load, last_store; /* values of `executed`: an LDP is one load, though it is two accesses */
};

/* An instruction that starts, or one of its accesses. */
struct event {
    uint64_t address;
    uint32_t size;
    uint32_t kind; /* EXECUTED, LOADED, STORED */
};
enum { EXECUTED, LOADED, STORED };

struct block {
    struct instruction *first, *last;
};

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static struct instruction* instructions[BUCKETS];
static struct block* previous;
static char out_path[4096];
static bool count_memory, traces;
static FILE* trace;
static time_t first_called[SYSTEM_CALLS];

static struct instruction* find_or_add(uint64_t address, const void* bytes, size_t size) {
    struct instruction** bucket = &instructions[(address ^ address >> 16) % BUCKETS];
    for (struct instruction* i = *bucket; i; i = i->next)
        if (i->address == address && i->size == size && !memcmp(i->bytes, bytes, size)) return i;
    struct instruction* added = calloc(1, sizeof *added);
    added->address = address;
    added->size = size;
    memcpy(added->bytes, bytes, size < MAX_BYTES ? size : MAX_BYTES);
    added->next = *bucket;
    return *bucket = added;
}

static void block_starts(unsigned vcpu, void* data) {
    (void)vcpu;
    struct block* block = data;
    if (previous) {
        struct instruction* last = previous->last;
        if (block->first->address != last->address + last->size) last->left++;
        if (block->first == last) last->continued++;
    }
    previous = block;
}

static void note(uint64_t address, size_t size, uint32_t kind) {
    if (!trace) {
        char path[sizeof out_path + 32];
        snprintf(path, sizeof path, "%s.%d.trace", out_path, (int)getpid());
        trace = fopen(path, "wb");
        if (!trace) {
            perror(path);
            exit(1);
        }
    }
    struct event event = {address, (uint32_t)size, kind};
    fwrite(&event, sizeof event, 1, trace);
}

static void instruction_starts(unsigned vcpu, void* data) {
    (void)vcpu;
    struct instruction* i = data;
    note(i->address, i->size, EXECUTED);
}

static void access_traced(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
    (void)vcpu, (void)data;
    size_t size = (size_t)1 << qemu_plugin_mem_size_shift(info);
    if (info >> 16 & MEMORY_READ) note(address, size, LOADED);
    if (info >> 16 & MEMORY_WRITE) note(address, size, STORED);
}

static void memory_accessed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void* data) {
    (void)vcpu, (void)address;
    struct instruction* i = data;
    if (info >> 16 & MEMORY_READ && i->last_load != i->executed) i->last_load = i->executed, i->loads++;
    if (info >> 16 & MEMORY_WRITE && i->last_store != i->executed) i->last_store = i->executed, i->stores++;
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct block* block = calloc(1, sizeof *block);
    for (size_t n = 0; n < count; n++) {
        struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, n);
        struct instruction* i =
            find_or_add(qemu_plugin_insn_vaddr(insn), qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
        if (n == 0) block->first = i;
        block->last = i;
        qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &i->executed, 1);
        if (count_memory)
            qemu_plugin_register_vcpu_mem_cb(insn, memory_accessed, CALLBACK_NO_REGISTERS, MEMORY_READ | MEMORY_WRITE,
                                             i);
        if (traces) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, instruction_starts, CALLBACK_NO_REGISTERS, i);
            qemu_plugin_register_vcpu_mem_cb(insn, access_traced, CALLBACK_NO_REGISTERS, MEMORY_READ | MEMORY_WRITE, i);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_starts, CALLBACK_NO_REGISTERS, block);
}

static void system_call(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number >= 0 && number < SYSTEM_CALLS && !first_called[number]) first_called[number] = time(NULL);
}

static void process_exits(qemu_plugin_id_t id, void* data) {
    (void)id, (void)data;
    char path[sizeof out_path + 16];
    snprintf(path, sizeof path, "%s.%d", out_path, (int)getpid());
    FILE* out = fopen(path, "w");
    if (!out) {
        perror(path);
        return;
    }
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct instruction* i = instructions[b]; i; i = i->next) {
            fprintf(out, "i %llx ", (unsigned long long)i->address);
            for (size_t n = 0; n < i->size; n++) fprintf(out, "%02x", i->bytes[n]);
            fprintf(out, " %llu %llu %llu %llu %llu\n", (unsigned long long)i->executed,
                    (unsigned long long)i->continued, (unsigned long long)i->left, (unsigned long long)i->loads,
                    (unsigned long long)i->stores);
        }
    for (int number = 0; number < SYSTEM_CALLS; number++)
        if (first_called[number]) fprintf(out, "s %d %lld\n", number, (long long)first_called[number]);
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (maps && fgets(line, sizeof line, maps)) fprintf(out, "m %s", line);
    if (maps) fclose(maps);
    fclose(out);
    if (trace) fclose(trace);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc,
                                                               char** argv) {
    (void)info;
    for (int n = 0; n < argc; n++) {
        if (!strncmp(argv[n], "out=", 4))
            snprintf(out_path, sizeof out_path, "%s", argv[n] + 4);
        else if (!strcmp(argv[n], "memory=on"))
            count_memory = true;
        else if (!strcmp(argv[n], "trace=on"))
            traces = true;
        else {
            fprintf(stderr, "counts.so: argument %s is not out=FILE, memory=on or trace=on\n", argv[n]);
            return 1;
        }
    }
    if (!out_path[0]) {
        fprintf(stderr, "counts.so: out=FILE is missing\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, system_call);
    qemu_plugin_register_atexit_cb(id, process_exits, NULL);
    return 0;
}
