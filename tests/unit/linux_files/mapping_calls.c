// What mappings of a file show when it is cut, grown and punched, and where its holes are. Prints every result.
#define _GNU_SOURCE
#include "../linux_calls/show.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static sigjmp_buf back;

static void on_bus(int number) { siglongjmp(back, number); }

// The byte, or minus the signal that reading it brings.
static int look(volatile char *byte) {
    int number = sigsetjmp(back, 1);
    return number ? -number : *byte;
}

static int file_of(long size) {
    int file = memfd_create("file", 0);
    SHOW(file >= 0);
    SHOW(ftruncate(file, size));
    return file;
}

static void cuts(int sharing) {
    int file = file_of(3 * PAGE);
    char *map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, sharing, file, 0);
    char *other = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    memset(map, 'a', 3 * PAGE);
    memset(other, 'b', PAGE);
    other[2 * PAGE] = 'b';
    SHOW(ftruncate(file, PAGE + 100));
    SHOW(look(map));
    SHOW(look(map + PAGE + 99));
    SHOW(look(map + 2 * PAGE));  // SIGBUS, also where it was a copy
    SHOW(look(other));
    SHOW(look(other + 2 * PAGE));
    SHOW(ftruncate(file, 3 * PAGE));
    SHOW(look(map + 2 * PAGE));
    SHOW(look(other + 2 * PAGE));
    SHOW(look(other));
    map[2 * PAGE] = 'c';
    SHOW(look(map + 2 * PAGE));
    SHOW(munmap(map, 3 * PAGE));
    SHOW(munmap(other, 3 * PAGE));
    close(file);
}

static void punches(void) {
    int file = file_of(4 * PAGE);
    char *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *other = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    memset(map, 'a', 4 * PAGE);
    other[PAGE] = 'b';
    SHOW(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
    SHOW(look(map + PAGE));
    SHOW(look(other + PAGE));  // a copy stays
    SHOW(madvise(map + 2 * PAGE, PAGE, MADV_REMOVE));
    SHOW(look(map + 2 * PAGE));
    SHOW(look(map + 3 * PAGE));
    SHOW(look(other + 2 * PAGE));
    char byte = 'x';
    SHOW(pread(file, &byte, 1, 2 * PAGE));
    SHOW(byte);
    SHOW(madvise(other, PAGE, MADV_REMOVE));
    SHOW(mprotect(map, PAGE, PROT_READ));
    SHOW(madvise(map + 1, PAGE, MADV_REMOVE));
    char *anonymous = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *anonymous = 'a';
    SHOW(madvise(anonymous, PAGE, MADV_REMOVE));
    SHOW(look(anonymous));
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(madvise(private, PAGE, MADV_REMOVE));
    close(file);
}

static void holes(void) {
    int file = file_of(10 * PAGE);
    SHOW(lseek(file, 0, SEEK_DATA));
    SHOW(lseek(file, 0, SEEK_HOLE));
    SHOW(pwrite(file, "data", 4, 2 * PAGE + 50));
    SHOW(pwrite(file, "data", 4, 5 * PAGE - 2));
    SHOW(lseek(file, 0, SEEK_DATA));
    SHOW(lseek(file, 2 * PAGE, SEEK_HOLE));
    SHOW(lseek(file, 2 * PAGE + 100, SEEK_DATA));
    SHOW(lseek(file, 3 * PAGE, SEEK_DATA));
    SHOW(lseek(file, 3 * PAGE + 5, SEEK_HOLE));
    SHOW(lseek(file, 5 * PAGE, SEEK_HOLE));
    SHOW(lseek(file, 6 * PAGE, SEEK_DATA));
    SHOW(lseek(file, 10 * PAGE - 1, SEEK_HOLE));
    SHOW(lseek(file, 10 * PAGE, SEEK_HOLE));
    SHOW(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * PAGE, PAGE));
    SHOW(lseek(file, 0, SEEK_DATA));
    close(file);
}

int main(void) {
    signal(SIGBUS, on_bus);
    cuts(MAP_SHARED);
    cuts(MAP_PRIVATE);
    punches();
    holes();
    return 0;
}
