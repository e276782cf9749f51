// Makes two functions at run time, calls them, and tells perf their names: in /tmp/perf-PID.map, or, with a directory
// as its argument, in a jitdump file there.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE = 62 };
static const uint8_t CODE[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};  // mov ecx, edi; 1: dec ecx; jnz 1b; ret
#else
enum { MACHINE = 183 };
static const uint32_t CODE[] = {0x71000400, 0x54ffffe1, 0xd65f03c0};  // 1: subs w0, w0, #1; b.ne 1b; ret
#endif

static const char* const NAMES[] = {"fast function", "slow_function"};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void write_map(const char* code) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE* file = fopen(name, "w");
    for (int i = 0; i < 2; i++) fprintf(file, "%lx %zx %s\n", (long)code + 4096 * i, sizeof CODE, NAMES[i]);
    fclose(file);
}

static void write_dump(const char* directory, const char* code) {
    char name[4096];
    snprintf(name, sizeof name, "%s/jit-%d.dump", directory, getpid());
    FILE* file = fopen(name, "w+");
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
    struct {
        uint32_t magic, version, size, machine, padding, pid;
        uint64_t time, flags;
    } header = {0x4A695444, 1, sizeof header, MACHINE, 0, getpid(), now(), 0};
    fwrite(&header, sizeof header, 1, file);
    for (int i = 0; i < 2; i++) {
        uint64_t address = (uint64_t)code + 4096 * i;
        struct {
            uint32_t id, size;
            uint64_t time;
            uint32_t pid, tid;
            uint64_t vma, address, length, index;
        } loaded = {0, 0, now(), getpid(), getpid(), address, address, sizeof CODE, i};
        loaded.size = sizeof loaded + strlen(NAMES[i]) + 1 + sizeof CODE;
        fwrite(&loaded, sizeof loaded, 1, file);
        fwrite(NAMES[i], strlen(NAMES[i]) + 1, 1, file);
        fwrite(CODE, sizeof CODE, 1, file);
    }
    fclose(file);
}

int main(int argc, char** argv) {
    char* code = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) memcpy(code + 4096 * i, CODE, sizeof CODE);
    mprotect(code, 8192, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, code + 8192);
    argc > 1 ? write_dump(argv[1], code) : write_map(code);
    for (int i = 0; i < 2; i++) ((void (*)(int))(code + 4096 * i))(100000 + 200000 * i);
}
