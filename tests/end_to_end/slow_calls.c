// One thing that takes long, again and again: `calls[N]`. A line on stderr says that it has begun.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

static const size_t GIGABYTE = 1 << 30;
static char* memory;
static int zero, null, hole, file;

static void* map(size_t size, int protection, int flags) {
    return mmap(0, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void reads(void) { read(zero, memory, 2 * GIGABYTE); }

static void reads_vectors(void) {
    struct iovec halves[] = {{memory, GIGABYTE}, {memory, GIGABYTE}};
    readv(zero, halves, 2);
}

static void writes(void) { write(null, memory, 2 * GIGABYTE); }

static void draws(void) { getrandom(memory, 2 * GIGABYTE, 0); }

static void sends(void) {
    off_t start = 0;
    sendfile(null, hole, &start, GIGABYTE);
}

static void copies(void) {
    off_t start = 0, into = 0;
    copy_file_range(hole, &start, file, &into, GIGABYTE / 4, 0);
}

static void copies_memory(void) {
    struct iovec from = {memory, GIGABYTE}, to = {memory + GIGABYTE, GIGABYTE};
    process_vm_readv(getpid(), &to, 1, &from, 1, 0);
}

static void populates(void) { munmap(map(2 * GIGABYTE, PROT_READ | PROT_WRITE, MAP_POPULATE), 2 * GIGABYTE); }

#ifdef __x86_64__
// inc byte [rip + 1]; mov eax, N; jmp to the beginning: N is another each time.
static const unsigned char CHANGES_ITSELF[] = {0xfe, 5, 1, 0, 0, 0, 0xb8, 0, 0, 0, 0, 0xeb, 0xf3};
// mov byte [rip + 256], 1; jmp to it: the page changes, but not what runs.
static const unsigned char CHANGES_ITS_PAGE[] = {0xc6, 5, 0, 1, 0, 0, 1, 0xeb, 0xf7};

static void run(const unsigned char* code, size_t size) {
    void* page = map(4096, PROT_READ | PROT_WRITE | PROT_EXEC, 0);
    memcpy(page, code, size);
    ((void (*)(void))page)();
}

static void changes_itself(void) { run(CHANGES_ITSELF, sizeof CHANGES_ITSELF); }

static void changes_its_page(void) { run(CHANGES_ITS_PAGE, sizeof CHANGES_ITS_PAGE); }
#else
static void changes_itself(void) {}
static void changes_its_page(void) {}
#endif

static void (*const calls[])(void) = {reads,  reads_vectors, writes,    draws,          sends,
                                      copies, copies_memory, populates, changes_itself, changes_its_page};

int main(int count, char** arguments) {
    memory = map(2 * GIGABYTE, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    hole = open("hole", O_RDWR | O_CREAT, 0600);
    file = memfd_create("file", 0);
    ftruncate(hole, GIGABYTE);
    write(2, "begun\n", 6);
    for (;;) calls[atoi(arguments[1])]();
}
