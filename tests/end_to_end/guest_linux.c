// Maps files in all ways that give mappings a name, prints what it has mapped, and computes: by itself, in a thread,
// and in a child with a name of its own.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define TWICE "1: sub $1, %0\n jnz 1b"
#else
#define TWICE "1: subs %0, %0, #1\n b.ne 1b"
#endif
#define LOOP(name)                                                                     \
    __attribute__((noinline)) void name(long n) {                                      \
        __asm__ volatile(TWICE : "+r"(n) : : "cc");                                    \
    }
LOOP(in_itself)
LOOP(in_child)
LOOP(in_thread)

static char text[1 << 16];

static void say(const char* line, size_t bytes) {
    while (bytes) {
        ssize_t written = write(1, line, bytes);
        if (written <= 0) _exit(1);
        line += written, bytes -= written;
    }
}

static void map(int fd, int protection, int flags) { mmap(0, 8192, protection, flags, fd, fd < 0 ? 0 : 4096); }

static int file(const char* path) {
    int fd = open(path, O_RDWR | O_CREAT, 0700);
    if (ftruncate(fd, 16384)) _exit(2);
    return fd;
}

static void* thread(void* unused) {
    prctl(PR_SET_NAME, "a thread");
    in_thread(1500000);
    return unused;
}

int main(void) {
    mkdir("/mnt", 0700);
    if (mount("below", "/mnt", "tmpfs", 0, 0)) _exit(3);
    mkdir("/mnt/directory", 0700);
    map(file("/tmp/shared"), PROT_READ | PROT_WRITE, MAP_SHARED);
    map(file("/tmp/of the dead"), PROT_READ | PROT_EXEC, MAP_PRIVATE);
    unlink("/tmp/of the dead");
    map(file("/mnt/directory/code"), PROT_READ | PROT_EXEC, MAP_SHARED);
    int memory = memfd_create("memory", 0);
    if (ftruncate(memory, 16384)) _exit(2);
    map(memory, PROT_READ, MAP_SHARED);
    map(-1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
    sbrk(4096);
    int fd = open("/proc/self/maps", O_RDONLY);
    size_t bytes = 0;
    for (ssize_t got; (got = read(fd, text + bytes, sizeof text - bytes)) > 0;) bytes += got;
    say("== maps\n", 8);
    say(text, bytes);
    say("==\n", 3);
    in_itself(2000000);
    pthread_t id;
    pthread_create(&id, 0, thread, 0);
    pthread_join(id, 0);
    if (!fork()) {
        prctl(PR_SET_NAME, "a child");
        in_child(1000000);
        _exit(0);
    }
    wait(0);
    return 0;
}
