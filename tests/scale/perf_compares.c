// Compares what perf script lists, by -F cpu,ip, with what has retired.
//
// perf_compares RETIRED...: of each CPU, an address of 8 bytes for each instruction. Reads lines "[CPU] ADDRESS";
// prints how many instructions were compared, and how many of these are a REP that an interrupt has had listed once
// more. What is wrong is on standard error, and the exit status 1.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MOST_CPUS = 64 };

static struct {
    const uint64_t* retired;
    uint64_t count, next;
} cpus[MOST_CPUS];

static void map(const char* path, int cpu) {
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status)) {
        perror(path);
        exit(2);
    }
    cpus[cpu].count = (uint64_t)status.st_size / sizeof(uint64_t);
    if (cpus[cpu].count) cpus[cpu].retired = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
}

int main(int argc, char** argv) {
    if (argc < 2 || argc > MOST_CPUS + 1) return 2;
    for (int i = 1; i < argc; i++) map(argv[i], i - 1);
    uint64_t compared = 0, repeated = 0;
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        const char* bracket = strchr(line, '[');
        char* behind = NULL;
        const unsigned long cpu = bracket ? strtoul(bracket + 1, &behind, 10) : MOST_CPUS;
        if (!behind || *behind != ']' || cpu + 1 >= (unsigned long)argc) {
            fprintf(stderr, "behind %" PRIu64 " instructions: %s", compared + repeated, line);
            return 1;
        }
        const uint64_t address = strtoull(behind + 1, NULL, 16), at = cpus[cpu].next;
        if (at < cpus[cpu].count && cpus[cpu].retired[at] == address) {
            cpus[cpu].next++;
            compared++;
        } else if (at && cpus[cpu].retired[at - 1] == address) {
            repeated++;
        } else {
            fprintf(stderr, "CPU %lu, behind %" PRIu64 " instructions: %#" PRIx64 "\n", cpu, at, address);
            return 1;
        }
    }
    for (int i = 0; i < argc - 1; i++) {
        if (cpus[i].next == cpus[i].count) continue;
        fprintf(stderr, "CPU %d: %" PRIu64 " of %" PRIu64 " instructions\n", i, cpus[i].next, cpus[i].count);
        return 1;
    }
    printf("%" PRIu64 " %" PRIu64 "\n", compared, repeated);
    return 0;
}
