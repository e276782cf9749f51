// Prints the result of every file syscall it makes, so that two kernels can be compared. Argument: a name unique to the
// run. Only what Linux documents, and what does not depend on the host, is in here.
#include "../linux_calls/show.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <termios.h>

static char b[4096], big[70000];
static struct stat st;
static int d, fd;  // the directory in which all happens, and a regular file in it

static const char* text(const char* bytes, int size) {
    static char copy[128];
    for (int i = 0; i < size; i++) copy[i] = bytes[i] ? bytes[i] : '.';
    copy[size] = 0;
    return copy;
}

static void shared_mappings(const char* path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    SHOW(file >= 0);
    SHOW(ftruncate(file, 8192));
    char* map = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    SHOW(map != MAP_FAILED);
    strcpy(map + 100, "hello");
    SHOW(pread(file, b, 6, 100));
    puts(b);
    SHOW(pwrite(file, "WORLD", 6, 5000));
    puts(map + 5000);
    SHOW(msync(map, 8192, MS_SYNC));
    strcpy(map + 200, "after msync");
    SHOW(pread(file, b, 12, 200));
    puts(b);
    SHOW(munmap(map, 8192));
    SHOW(close(file));

    file = open(path, O_RDONLY);
    SHOW(pread(file, b, 12, 200));
    puts(b);
    SHOW(mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    map = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    puts(map + 100);
    map[100] = 'J';
    SHOW(pread(file, b, 6, 100));
    puts(b);
    puts(map + 5000);
    SHOW(munmap(map, 8192));
    SHOW(truncate(path, 4096));
    SHOW(truncate(path, 8192));
    map = mmap(0, 8192, PROT_READ, MAP_SHARED, file, 0);
    printf("[%s] [%s]\n", map + 5000, map + 200);
    SHOW(unlink(path));
    printf("[%s]\n", map + 100);
    SHOW(munmap(map, 8192));
    SHOW(close(file));
}

static void creating(void) {
    SHOW(mkdir("d", 0777));
    SHOW(mkdir("d", 0777));
    SHOW(chdir("d"));
    SHOW((d = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
    SHOW(open("nope", O_RDONLY));
    SHOW(open("x/y", O_CREAT, 0));
    SHOW(open("", O_RDONLY));
    SHOW(openat(d, "f", O_CREAT | O_EXCL | O_RDWR, 0640) >= 0);
    SHOW(openat(d, "f", O_CREAT | O_EXCL | O_RDWR, 0640));
    SHOW(stat("f", &st));
    printf("%o %ld %ld\n", st.st_mode, (long)st.st_size, (long)st.st_nlink);
    SHOW(open(".", O_RDWR));
    SHOW(open(".", O_RDONLY | O_CREAT, 0));
    SHOW(open("f", O_DIRECTORY));
    SHOW(open("f/", O_RDONLY));
    SHOW(open("new/", O_CREAT | O_WRONLY, 0600));
    SHOW(mknod("node", S_IFREG | 0600, 0));
    umask(0077);
    SHOW(open("um", O_CREAT | O_WRONLY, 0666) >= 0);
    SHOW(stat("um", &st));
    printf("%o\n", st.st_mode);
    SHOW(mkdir("umd", 0777));
    SHOW(stat("umd", &st));
    printf("%o\n", st.st_mode);
    SHOW(umask(022));
    int file;
    SHOW((file = open(".", O_TMPFILE | O_RDWR, 0600)) >= 0);
    SHOW(write(file, "tmp", 3));
    SHOW(fstat(file, &st));
    SHOW(st.st_nlink);
    SHOW(open(".", O_TMPFILE | O_RDONLY, 0600));
}

static void linking(void) {
    SHOW(link("f", "g"));
    SHOW(stat("f", &st));
    SHOW(st.st_nlink);
    SHOW(link("f", "g"));
    SHOW(symlink("f", "l"));
    SHOW(symlink("f", "l"));
    SHOW(symlink("", "e"));
    SHOW(symlink("dangles", "dangling"));
    SHOW(symlink("loop", "loop"));
    SHOW(stat("loop", &st));
    SHOW(lstat("l", &st));
    printf("%o %ld\n", st.st_mode, (long)st.st_size);
    SHOW(open("l", O_NOFOLLOW));
    SHOW(open("l", O_NOFOLLOW | O_PATH) >= 0);
    SHOW(open("dangling", O_RDWR));
    SHOW(open("dangling", O_RDWR | O_CREAT | O_EXCL, 0600));
    SHOW(open("dangling", O_RDWR | O_CREAT, 0600) >= 0);
    SHOW(access("dangles", F_OK));
    SHOW(readlink("l", b, sizeof b));
    SHOW(readlink("f", b, sizeof b));
    SHOW(readlink("l", b, 0));
}

static void removing_and_renaming(void) {
    SHOW(rmdir("."));
    SHOW(rmdir(".."));
    SHOW(rmdir("/"));
    SHOW(unlink("."));
    SHOW(unlink(""));
    SHOW(rmdir("f"));
    SHOW(unlink("f/"));
    SHOW(rmdir("l/"));
    SHOW(mkdir("/", 0));
    SHOW(mkdir("sub/", 0755));
    SHOW(mkdir("sub/x/", 0755));
    SHOW(rmdir("sub"));
    SHOW(rename("sub", "sub/x/y"));
    SHOW(rename("sub/x", "g"));
    SHOW(rename("g", "sub"));
    SHOW(rename("sub", "new/"));
    SHOW(rename("g", "n2/"));
    SHOW(rename("g", "h"));
    SHOW(rename("g", "h"));
    SHOW(rename("h", "f"));
    SHOW(access("h", F_OK));
    SHOW(rename("/", "x"));
    SHOW(renameat2(AT_FDCWD, "dangles", AT_FDCWD, "l", RENAME_NOREPLACE));
    SHOW(unlink("new"));
    SHOW(remove("new/x"));
    SHOW(remove("new"));
    SHOW(unlinkat(d, "f", 0x8000));
    SHOW(unlinkat(d, "f", AT_REMOVEDIR));
}

static void attributes(void) {
    struct timespec times[2] = {{5, 6}, {7, 8}};
    SHOW(chmod("f", 0751));
    SHOW(stat("f", &st));
    printf("%o\n", st.st_mode);
    SHOW(fchmodat(d, "l", 0640, 0));
    SHOW(stat("f", &st));
    printf("%o\n", st.st_mode);
    SHOW(utimensat(AT_FDCWD, "f", times, 0));
    SHOW(stat("f", &st));
    printf("%ld.%09ld\n", (long)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec);
    times[1].tv_nsec = UTIME_OMIT;
    SHOW(utimensat(AT_FDCWD, "f", times, 0));
    SHOW(stat("f", &st));
    SHOW(st.st_mtim.tv_sec);
    times[0].tv_nsec = 2000000000;
    SHOW(utimensat(AT_FDCWD, "f", times, 0));
    SHOW(faccessat(d, "f", X_OK, AT_EACCESS));
    SHOW(faccessat(d, "f", X_OK, 0x8000));
    SHOW(fstatat(d, "", &st, AT_EMPTY_PATH));
    SHOW(fstatat(d, "", &st, 0));
    SHOW(fstatat(999, "f", &st, 0));
    SHOW(fstatat(999, "/", &st, 0));
    memset(b, 'a', 300);
    b[300] = 0;
    SHOW(stat(b, &st));
    memset(b, '/', 4095);
    b[4095] = 0;
    SHOW(stat(b, &st));
    SHOW(statfs("/proc", (void*)b));
    SHOW(((struct statfs*)b)->f_type);
    struct statfs here, in_pipe;
    int ends[2];
    SHOW(pipe(ends));
    SHOW(fstatfs(ends[0], &in_pipe));
    SHOW(in_pipe.f_type);
    SHOW(mkfifo("with a name", 0600));
    int fifo = open("with a name", O_RDWR);
    SHOW(statfs(".", &here));
    SHOW(fstatfs(fifo, &in_pipe));
    SHOW(in_pipe.f_type == here.f_type);
    close(ends[0]), close(ends[1]), close(fifo);
    SHOW(unlink("with a name"));
}

static void reading_and_writing(void) {
    struct iovec vector[3] = {{b, 2}, {b + 10, 0}, {b + 20, 100}};
    volatile int count = -1;
    fd = open("f", O_RDWR);
    SHOW(write(fd, "0123456789", 10));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(read(fd, b, 4));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(lseek(fd, -100, SEEK_CUR));
    SHOW(lseek(fd, 100, SEEK_SET));
    SHOW(read(fd, b, 4));
    SHOW(write(fd, "x", 1));
    SHOW(fstat(fd, &st));
    SHOW(st.st_size);
    SHOW(lseek(fd, 0, 77));
    SHOW(lseek(fd, 0, SEEK_HOLE));
    SHOW(ftruncate(fd, 5));
    SHOW(pread(fd, b, 10, 2));
    SHOW(pread(fd, b, 10, -1));
    SHOW(pwrite(fd, "abc", 3, 1));
    SHOW(pread(fd, b, 10, 0));
    puts(text(b, 5));
    SHOW(preadv(fd, vector, 3, 1));
    SHOW(preadv(fd, vector, count, 1));
    SHOW(preadv2(fd, vector, 3, 0, 0));
    SHOW(posix_fallocate(fd, 0, 20));
    SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2));
    SHOW(pread(fd, b, 30, 0));
    puts(text(b, 20));
    SHOW(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
    SHOW(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SHOW(write(fd, "END", 3));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(pwrite(fd, "Q", 1, 0));
    SHOW(fstat(fd, &st));
    printf("%ld\n", (long)st.st_size);
    SHOW(truncate("f", -1));
    SHOW(truncate("umd", 0));
}

static void descriptors(void) {
    int reading = open("f", O_RDONLY), writing = open("f", O_WRONLY), count = 0;
    struct flock lock = {.l_type = F_WRLCK};
    off_t offset = 1;
    SHOW(fcntl(fd, F_DUPFD, 100));
    SHOW(fcntl(100, F_GETFD));
    SHOW(fcntl(100, F_SETFD, 1));
    SHOW(fcntl(100, F_GETFD));
    SHOW(dup2(99, 5));
    SHOW(dup3(fd, fd, 0));
    SHOW(dup3(fd, 200, O_CLOEXEC));
    SHOW(fcntl(200, F_GETFD));
    SHOW(close(200));
    SHOW(close(200));
    SHOW(dup2(fd, 99999999));
    SHOW(fcntl(fd, F_DUPFD, -1));
    SHOW(fcntl(fd, 12345, 0));
    SHOW(close_range(50, 300, 0));
    SHOW(fcntl(100, F_GETFD));
    SHOW(fcntl(fd, F_SETLK, &lock));
    SHOW(fcntl(fd, F_GETLK, &lock));
    SHOW(lock.l_type == F_UNLCK);
    SHOW(fcntl(reading, F_SETLK, &(struct flock){.l_type = F_WRLCK}));
    SHOW(flock(fd, LOCK_EX));
    SHOW(write(reading, "x", 1));
    SHOW(ftruncate(reading, 1));
    SHOW(read(writing, b, 1));
    SHOW(read(d, b, 10));
    SHOW(write(d, b, 10));
    SHOW(ioctl(fd, TCGETS, b));
    SHOW(ioctl(reading, FIONREAD, &count));
    SHOW(count);
    SHOW(sendfile(writing, reading, 0, 5));
    SHOW(sendfile(writing, reading, &offset, 3));
    SHOW(offset);
    SHOW(copy_file_range(reading, &offset, writing, 0, 4, 0));
    SHOW(offset);
    SHOW(copy_file_range(reading, &offset, writing, 0, 4, 1));
    SHOW(fstatat(fd, "f", &st, 0));
}

static void directories(void) {
    int types = 0, names = 0;
    struct dirent* entry;
    DIR* directory = fdopendir(dup(d));
    while ((entry = readdir(directory))) types += entry->d_type;
    SHOW(types);
    rewinddir(directory);
    while ((entry = readdir(directory))) names++;
    SHOW(names);
    SHOW(getcwd(b, 2) == 0);
    SHOW(getcwd(b, 4096) != 0);
    puts(strrchr(b, '/'));
    SHOW(fchdir(fd));
    SHOW(chdir("f"));
    SHOW(chdir("nope"));
    SHOW(fchdir(d));
}

static void pipes(void) {
    int p[2], count;
    struct pollfd wanted[3];
    SHOW(pipe2(p, O_NONBLOCK));
    wanted[0] = (struct pollfd){p[0], POLLIN | POLLOUT};
    wanted[1] = (struct pollfd){p[1], POLLOUT | POLLIN};
    wanted[2] = (struct pollfd){-1, POLLIN};
    SHOW(read(p[0], b, 1));
    SHOW(write(p[1], "abc", 3));
    SHOW(ioctl(p[0], FIONREAD, &count));
    SHOW(count);
    SHOW(lseek(p[0], 0, 0));
    SHOW(pread(p[0], b, 1, 0));
    SHOW(read(p[1], b, 1));
    SHOW(write(p[0], b, 1));
    SHOW(fcntl(p[0], F_GETPIPE_SZ));
    SHOW(poll(wanted, 3, 0));
    printf("%d %d\n", wanted[0].revents, wanted[1].revents);
    SHOW(read(p[0], b, 2));
    SHOW(read(p[0], b, 20));
    SHOW(read(p[0], b, 20));
    SHOW(poll(wanted, 1, 10));
    SHOW(write(p[1], big, sizeof big));
    SHOW(write(p[1], big, 10));
    SHOW(poll(wanted + 1, 1, 0));
    SHOW(close(p[1]));
    SHOW(poll(wanted, 1, 0));
    SHOW(wanted[0].revents);
    while (read(p[0], big, sizeof big) > 0) continue;
    SHOW(read(p[0], b, 1));
    SHOW(poll(wanted, 1, 0));
    SHOW(wanted[0].revents);
    SHOW(close(p[0]));
    SHOW(poll(wanted, 1, 0));
    SHOW(wanted[0].revents);
    signal(SIGPIPE, SIG_IGN);
    SHOW(pipe(p));
    SHOW(close(p[0]));
    SHOW(write(p[1], "x", 1));
    wanted[0].fd = p[1];
    SHOW(poll(wanted, 1, 0));
    SHOW(wanted[0].revents);
}

static void events(void) {
    int event, poller;
    unsigned long long value;
    struct epoll_event one = {EPOLLIN | EPOLLET, {.u64 = 42}}, told[4];
    fd_set reading;
    SHOW((event = eventfd(3, EFD_NONBLOCK)) >= 0);
    SHOW(read(event, &value, 8));
    SHOW(value);
    SHOW(read(event, &value, 8));
    value = -1;
    SHOW(write(event, &value, 8));
    value = -2;
    SHOW(write(event, &value, 8));
    value = 1;
    SHOW(write(event, &value, 8));
    SHOW(write(event, &value, 4));
    SHOW((poller = epoll_create1(0)) >= 0);
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, event, &one));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, event, &one));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &one));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, 777, &one));
    SHOW(epoll_wait(poller, told, 4, 0));
    SHOW(told[0].data.u64);
    SHOW(epoll_wait(poller, told, 4, 0));
    SHOW(epoll_wait(poller, told, 0, 0));
    int inner = epoll_create1(0), other = eventfd(1, 0);
    struct epoll_event exclusive = {EPOLLIN | EPOLLEXCLUSIVE, {.u64 = 43}}, urgent = {EPOLLPRI | EPOLLEXCLUSIVE, {0}};
    SHOW(epoll_ctl(poller, EPOLL_CTL_MOD, event, &exclusive));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, inner, &exclusive));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &exclusive));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, poller, &exclusive));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, other, &urgent));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, other, &exclusive));
    SHOW(epoll_ctl(poller, EPOLL_CTL_MOD, other, &one));
    SHOW(epoll_wait(poller, told, 4, 0));
    SHOW(told[0].data.u64);
    SHOW(epoll_ctl(poller, EPOLL_CTL_DEL, other, 0));
    SHOW(epoll_ctl(poller, EPOLL_CTL_ADD, other, &one));
    close(inner);
    close(other);
    FD_ZERO(&reading);
    FD_SET(event, &reading);
    SHOW(select(event + 1, &reading, 0, 0, &(struct timeval){0, 1000}));
    SHOW(FD_ISSET(event, &reading) != 0);
    SHOW(select(0, 0, 0, 0, &(struct timeval){0, 1000}));
}

static void notifications(void) {
    SHOW(fcntl(d, F_NOTIFY, DN_MULTISHOT));
    SHOW(fcntl(fd, F_NOTIFY, 0));
    SHOW(fcntl(fd, F_NOTIFY, DN_CREATE));
}

static void proc(void) {
    int memory, again;
    SHOW((memory = memfd_create("m", 0)) >= 0);
    SHOW(write(memory, "abc", 3));
    SHOW(fstat(memory, &st));
    printf("%o %ld\n", st.st_mode, (long)st.st_nlink);
    snprintf(b, 100, "/proc/self/fd/%d", memory);
    SHOW((again = open(b, O_RDONLY)) >= 0);
    SHOW(read(again, b, 10));
    SHOW(open("/proc/self/nope", O_RDONLY));
    SHOW(open("/proc/self/maps/x", O_RDONLY));
    SHOW(access("/proc/self/maps", R_OK));
    SHOW(open("/dev/null", O_RDWR) >= 0);
}

int main(int argc, char** argv) {
    setvbuf(stdout, 0, _IOLBF, 0);
    shared_mappings("mapped");
    snprintf(big, 200, "/tmp/%s", argv[1]);
    shared_mappings(big);
    snprintf(big, 200, "/dev/shm/%s", argv[1]);
    shared_mappings(big);
    creating();
    linking();
    removing_and_renaming();
    attributes();
    reading_and_writing();
    descriptors();
    directories();
    pipes();
    events();
    notifications();
    proc();
    SHOW(chdir(".."));
    SHOW(rmdir("d"));
    return 0;
}
