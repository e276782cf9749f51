/* What /proc says of memory, locked pages, /proc/PID/mem and pagemap. */
#include "show.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGES 12

static void smaps(const char *what, void *address) {
    static const char *const WANTED[] = {"Size:", "Rss:", "Pss:", "Pss_Dirty:", "Shared_", "Private_", "Anonymous:", "Locked:"};
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512], start[32];
    sprintf(start, "%lx-", (long)address);
    int inside = 0;
    printf("%s\n", what);
    while (fgets(line, sizeof line, file)) {
        if (line[0] >= '0' && line[0] <= '9' || line[0] >= 'a' && line[0] <= 'f') inside = !strncmp(line, start, strlen(start));
        if (!inside || strstr(line, "Hugetlb")) continue;
        for (int i = 0; i < 8; i++)
            if (!strncmp(line, WANTED[i], strlen(WANTED[i]))) fputs(line, stdout);
    }
    fclose(file);
}

static void status(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[512];
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, "VmLck", 5)) fputs(line, stdout);
    fclose(file);
}

static void pagemap(const char *what, char *address) {
    uint64_t entries[PAGES];
    int fd = open("/proc/self/pagemap", O_RDONLY);
    pread(fd, entries, sizeof entries, (uintptr_t)address / 4096 * 8);
    printf("%s:", what);
    for (int i = 0; i < PAGES; i++) printf(" %d%d%d", (int)(entries[i] >> 63), (int)(entries[i] >> 61 & 1), (int)(entries[i] >> 56 & 1));
    puts("");
    SHOW(pread(fd, entries, 7, 0));
    SHOW(pread(fd, entries, 8, 4));
    close(fd);
}

static char *area(int flags, int fd) {
    char *start = mmap(NULL, (PAGES + 2) * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mmap(start + 4096, PAGES * 4096, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
}

int main(void) {
    char *private = area(MAP_PRIVATE | MAP_ANONYMOUS, -1), *shared = area(MAP_SHARED | MAP_ANONYMOUS, -1);
    int fd = memfd_create("file", 0);
    ftruncate(fd, PAGES * 4096);
    char *of_file = area(MAP_PRIVATE, fd);
    smaps("untouched", private);
    for (int i = 0; i < 5; i++) private[i * 4096] = shared[i * 4096] = 1;
    for (int i = 0; i < 3; i++) of_file[i * 4096] = 1;
    smaps("private", private), smaps("shared", shared), smaps("of a file", of_file);
    pagemap("private", private), pagemap("shared", shared);
    volatile char zero = private[6 * 4096];
    smaps("read, too", private);
    int back[2], forth[2];
    pipe(back), pipe(forth);
    pid_t child = fork();
    char c;
    if (!child) {
        smaps("the child's private", private), smaps("the child's shared", shared);
        private[0] = 2;
        smaps("after a write", private);
        pagemap("the child's private", private);
        status();
        fflush(stdout);
        write(back[1], "x", 1);
        read(forth[0], &c, 1);
        _exit(0);
    }
    read(back[0], &c, 1);
    smaps("the parent's private", private), smaps("the parent's shared", shared);
    write(forth[1], "x", 1);
    waitpid(child, NULL, 0);
    smaps("alone again", private);

    SHOW(mlock(private + 4096, 3 * 4096));
    status();
    smaps("the locked part", private + 4096);
    SHOW(madvise(private, PAGES * 4096, MADV_DONTNEED));
    SHOW(mlock(private - 4096, 4096));
    SHOW(munlock(private + 4096, 4096));
    status();
    child = fork();
    if (!child) {
        status();
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    SHOW(mlock2(private, PAGES * 4096, MLOCK_ONFAULT));
    smaps("locked on fault", private);
    status();
    SHOW(munlockall());
    status();
    SHOW(mlockall(0));
    SHOW(mlockall(MCL_FUTURE));
    char *later = area(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    smaps("mapped later", later);
    munlockall();
    char *locked = area(MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1);
    smaps("mapped locked", locked);

    int mem = open("/proc/self/mem", O_RDWR);
    strcpy(private, "in memory");
    char text[8192];
    SHOW(pread(mem, text, 10, (uintptr_t)private));
    puts(text);
    SHOW(pwrite(mem, "written", 8, (uintptr_t)private));
    puts(private);
    SHOW(pread(mem, text, 10, 0));
    mprotect(private + 11 * 4096, 4096, PROT_NONE);
    munmap(private + 11 * 4096, 2 * 4096);
    SHOW(pread(mem, text, 8192, (uintptr_t)private + 10 * 4096 + 96));
    SHOW(pwrite(mem, text, 8192, (uintptr_t)private + 10 * 4096 + 96));
    unsigned char there[PAGES];
    SHOW(mincore(shared, PAGES * 4096, there));
    for (int i = 0; i < PAGES; i++) printf("%d", there[i] & 1);
    puts("");
    return 0;
}
