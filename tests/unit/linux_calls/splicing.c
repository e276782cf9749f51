/* splice, tee, vmsplice, sealed memory files, RWF_APPEND. */
#include "show.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char data[200000];

static void splices(void) {
    int ends[2], other[2], pair[2];
    pipe(ends), pipe(other);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int file = memfd_create("a", 0), target = memfd_create("b", 0);
    write(file, "0123456789", 10);
    SHOW(splice(file, NULL, target, NULL, 5, 0));
    SHOW(splice(ends[0], NULL, ends[1], NULL, 5, 0));
    SHOW(splice(99, NULL, ends[1], NULL, 5, 0));
    SHOW(splice(file, NULL, ends[0], NULL, 5, 0));
    SHOW(splice(ends[0], NULL, other[1], NULL, 5, SPLICE_F_NONBLOCK));
    loff_t at = 2;
    SHOW(splice(file, &at, ends[1], NULL, 5, 0));
    SHOW(at);
    SHOW(lseek(file, 0, SEEK_CUR));
    SHOW(splice(file, NULL, ends[1], NULL, 5, 0));
    SHOW(splice(file, &at, ends[1], &at, 5, 0));
    SHOW(splice(file, &at, ends[1], NULL, 0, 0));
    SHOW(splice(file, &at, ends[1], NULL, 5, 64));
    SHOW(tee(ends[0], other[1], 3, 0));
    SHOW(tee(ends[0], file, 3, 0));
    SHOW(tee(ends[0], ends[1], 3, 0));
    SHOW(read(other[0], data, 10));
    SHOW(splice(ends[0], NULL, other[1], NULL, 4, 0));
    SHOW(splice(ends[0], NULL, target, NULL, 100, 0));
    SHOW(lseek(target, 0, SEEK_CUR));
    at = 100;
    SHOW(splice(other[0], NULL, target, &at, 100, 0));
    SHOW(at);
    SHOW(pread(target, data, 200, 0));
    printf("%.1s %.4s\n", data, data + 100);
    SHOW(splice(file, NULL, ends[1], NULL, 100, 0));
    lseek(file, 0, SEEK_SET);
    SHOW(splice(file, NULL, ends[1], NULL, 100, 0));
    SHOW(splice(ends[0], NULL, pair[0], NULL, 6, 0));
    SHOW(splice(pair[1], NULL, other[1], NULL, 100, 0));
    SHOW(read(other[0], data, 100));
    printf("%.6s\n", data);
    at = 0;
    SHOW(splice(pair[0], &at, other[1], NULL, 1, 0));
    int appending = open("/tmp/splicing", O_CREAT | O_RDWR | O_APPEND, 0600);
    unlink("/tmp/splicing");
    SHOW(splice(ends[0], NULL, appending, NULL, 4, 0));
    close(ends[1]);
    SHOW(splice(ends[0], NULL, target, NULL, 100, 0));
    SHOW(splice(ends[0], NULL, target, NULL, 100, 0));
    close(other[0]);
    signal(SIGPIPE, SIG_IGN);
    lseek(file, 0, SEEK_SET);
    SHOW(splice(file, NULL, other[1], NULL, 4, 0));
    SHOW(lseek(file, 0, SEEK_CUR));

    pipe(ends), pipe(other);
    pid_t child = fork();
    if (!child) {
        usleep(20000);
        write(ends[1], "later", 5);
        _exit(0);
    }
    SHOW(splice(ends[0], NULL, other[1], NULL, 100, 0));
    waitpid(child, NULL, 0);
    SHOW(read(other[0], data, 100));
    write(ends[1], "teed", 4);
    SHOW(tee(ends[0], other[1], 100, SPLICE_F_NONBLOCK));
    SHOW(read(other[0], data, 100));
    SHOW(read(ends[0], data, 100));
    SHOW(tee(ends[0], other[1], 100, SPLICE_F_NONBLOCK));

    struct iovec pieces[2] = {{"from ", 5}, {"memory", 6}};
    SHOW(vmsplice(ends[1], pieces, 2, 0));
    SHOW(read(ends[0], data, 100));
    printf("%.11s\n", data);
    write(ends[1], "to memory", 9);
    struct iovec into[2] = {{data, 3}, {data + 50, 100}};
    SHOW(vmsplice(ends[0], into, 2, 0));
    printf("%.3s%.6s\n", data, data + 50);
    SHOW(vmsplice(ends[0], into, 2, SPLICE_F_NONBLOCK));
    SHOW(vmsplice(file, pieces, 2, 0));
    SHOW(vmsplice(ends[1], pieces, 2000, 0));

    ftruncate(file, 150000);
    lseek(file, 0, SEEK_SET);
    SHOW(splice(file, NULL, ends[1], NULL, 150000, 0));
    SHOW(splice(file, NULL, ends[1], NULL, 150000, SPLICE_F_NONBLOCK));
    SHOW(splice(ends[0], NULL, target, NULL, 1 << 20, 0));
}

static void seals(void) {
    int plain = memfd_create("plain", 0), fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    SHOW(fcntl(plain, F_GET_SEALS));
    SHOW(fcntl(plain, F_ADD_SEALS, F_SEAL_WRITE));
    SHOW(fcntl(0, F_GET_SEALS));
    SHOW(fcntl(fd, F_GET_SEALS));
    SHOW(write(fd, "0123456789", 10));
    SHOW(fcntl(fd, F_ADD_SEALS, 0x1000));
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    SHOW(ftruncate(fd, 5));
    SHOW(ftruncate(fd, 20));
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    SHOW(ftruncate(fd, 30));
    SHOW(ftruncate(fd, 20));
    lseek(fd, 18, SEEK_SET);
    SHOW(write(fd, "abcdef", 6));
    SHOW(write(fd, "abcdef", 6));
    SHOW(fallocate(fd, 0, 0, 100));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    munmap(map, 4096);
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    SHOW(fcntl(fd, F_GET_SEALS));
    SHOW(pwrite(fd, "x", 1, 0));
    SHOW((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    SHOW(mprotect(map, 4096, PROT_READ | PROT_WRITE));
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    map[0] = 'y';
    SHOW(pread(fd, data, 1, 0));
    SHOW(data[0]);
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    int future = memfd_create("future", MFD_ALLOW_SEALING);
    ftruncate(future, 4096);
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, future, 0);
    SHOW(fcntl(future, F_ADD_SEALS, 0x10 /* F_SEAL_FUTURE_WRITE */));
    map[1] = 'z';
    SHOW(pread(future, data, 2, 0));
    SHOW(data[1]);
    SHOW(pwrite(future, "x", 1, 0));
    SHOW((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, future, 0));
    SHOW(memfd_create("x", 0x100));
}

static void flags(void) {
    int fd = memfd_create("flags", 0);
    struct iovec piece = {"appended", 8};
    write(fd, "0123456789", 10);
    SHOW(pwritev2(fd, &piece, 1, 2, 0x10 /* RWF_APPEND */));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(pread(fd, data, 20, 0));
    printf("%.18s\n", data);
    SHOW(pwritev2(fd, &piece, 1, 2, 0x40000000));
    SHOW(preadv2(fd, &piece, 1, 2, 0x10));
    int target = memfd_create("target", 0);
    loff_t at = 3;
    SHOW(copy_file_range(fd, &at, target, NULL, 4, 0));
    SHOW(at);
    SHOW(copy_file_range(fd, &at, target, NULL, 4, 1));
    SHOW(copy_file_range(fd, NULL, fd, NULL, 4, 0));
    SHOW(lseek(fd, 0, SEEK_SET));
    at = 2;
    SHOW(copy_file_range(fd, NULL, fd, &at, 4, 0));
    at = 10;
    SHOW(copy_file_range(fd, NULL, fd, &at, 4, 0));
    int ends[2];
    pipe(ends);
    SHOW(copy_file_range(ends[0], NULL, fd, NULL, 4, 0));
    int reading = open("/proc/self/exe", O_RDONLY);
    SHOW(copy_file_range(fd, NULL, reading, NULL, 4, 0));
}

/* To a pipe: what there is room for. */
static void sendfiles(void) {
    int ends[2], other[2], pair[2], file = memfd_create("a", 0), zero = open("/dev/zero", O_RDONLY);
    off_t at = 0;
    pipe(ends), pipe(other);
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    write(file, data, sizeof data), write(other[1], "01234", 5), write(pair[1], "abc", 3);
    SHOW(sendfile(ends[1], file, &at, sizeof data));
    SHOW(at);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    SHOW(sendfile(ends[1], file, &at, sizeof data));
    SHOW(read(ends[0], data, 8192));
    SHOW(sendfile(ends[1], file, &at, 4096));
    SHOW(sendfile(ends[1], file, 0, 10));
    SHOW(read(ends[0], data, sizeof data));
    SHOW(lseek(file, 0, SEEK_CUR));
    lseek(file, 2, SEEK_SET);
    SHOW(sendfile(ends[1], file, 0, 10));
    SHOW(lseek(file, 0, SEEK_CUR));
    SHOW(sendfile(ends[1], zero, 0, 5));
    SHOW(sendfile(ends[1], pair[0], 0, 10));
    SHOW(read(ends[0], data, sizeof data));
    SHOW(sendfile(ends[1], other[0], 0, 5));
    SHOW(sendfile(file, other[0], 0, 5));
    SHOW(sendfile(pair[0], pair[1], 0, 5));
    SHOW(sendfile(file, pair[1], 0, 5));
    SHOW(sendfile(pair[0], zero, 0, 5));
    SHOW(sendfile(file, zero, 0, 5));
    SHOW(sendfile(ends[1], file, &at, 0));
    int appending = open("/tmp/splicing", O_CREAT | O_RDWR | O_APPEND, 0600);
    unlink("/tmp/splicing");
    SHOW(sendfile(appending, file, &at, 5));
    close(ends[0]);
    SHOW(sendfile(ends[1], file, &at, 0));
    SHOW(sendfile(ends[1], file, &at, 5));
}

int main(void) {
    splices();
    seals();
    flags();
    sendfiles();
    return 0;
}
