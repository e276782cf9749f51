// Two processes that count at the same time, at the same virtual address. processes: each in memory of its own, copied
// on the first write; processes shared: in one word each of a page that both have mapped.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 20000 };

static _Alignas(4096) uint64_t own[512];

int main(int argc, char** argv) {
    uint64_t* words = own;
    if (argc > 1)
        words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
    int word = 0;
    pid_t child = fork();
    if (child == 0 && argc > 1) word = 1;
    volatile uint64_t* counter = words + word;
    for (int i = 0; i < TIMES; i++) *counter = *counter + 1;
    if (child == 0) return 0;
    int status;
    waitpid(child, &status, 0);
    return status == 0 && words[0] == TIMES && words[1] == (argc > 1 ? TIMES : 0) ? 0 : 1;
}
