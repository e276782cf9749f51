/* What inotify tells of what is done to files, and when. */
#include "show.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <utime.h>

static int fd;

static const char *const EVENTS[] = {
    "ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM", "MOVED_TO", "CREATE", "DELETE",
    "DELETE_SELF", "MOVE_SELF", "?", "UNMOUNT", "Q_OVERFLOW", "IGNORED",
};

static void drain(const char *what) {
    static char data[65536] __attribute__((aligned(8)));
    int size = read(fd, data, sizeof data);
    printf("%s:%s\n", what, size < 0 ? " nothing" : "");
    for (char *at = data; at < data + size;) {
        struct inotify_event *event = (void *)at;
        printf("  %d", event->wd);
        for (int bit = 0; bit < 16; bit++)
            if (event->mask >> bit & 1) printf(" %s", EVENTS[bit]);
        if (event->mask & IN_ISDIR) printf(" ISDIR");
        printf(" %s len %u%s\n", event->len ? event->name : "-", event->len, event->cookie ? " cookie" : "");
        at += sizeof *event + event->len;
    }
    fflush(stdout);
}

int main(void) {
    char top[] = "/tmp/inotify.XXXXXX", c;
    chdir(mkdtemp(top));
    SHOW(syscall(SYS_inotify_init1, 1));
    fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    SHOW(read(fd, &c, 1));
    SHOW(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
    SHOW(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
    SHOW(inotify_add_watch(fd, "none", IN_ALL_EVENTS));
    SHOW(inotify_add_watch(fd, ".", 0));
    SHOW(inotify_add_watch(1, ".", IN_OPEN));
    SHOW(inotify_add_watch(999, ".", IN_OPEN));
    SHOW(inotify_add_watch(fd, ".", IN_OPEN | IN_MASK_CREATE));
    SHOW(inotify_add_watch(fd, ".", IN_OPEN | IN_MASK_CREATE | IN_MASK_ADD));
    SHOW(inotify_rm_watch(fd, 77));
    drain("start");

    int file = open("file", O_RDWR | O_CREAT, 0644);
    drain("create");
    SHOW(inotify_add_watch(fd, "file", IN_ALL_EVENTS));
    SHOW(inotify_add_watch(fd, "file", IN_OPEN | IN_ONLYDIR));
    write(file, "hello", 5), write(file, "again", 5);
    drain("two writes");
    pread(file, &c, 1, 0);
    drain("read");
    pread(file, &c, 1, 100), read(file, &c, 1);
    drain("read at the end");
    ftruncate(file, 3);
    drain("ftruncate");
    truncate("file", 2);
    drain("truncate");
    fchmod(file, 0600);
    drain("fchmod");
    utime("file", NULL);
    drain("utime");
    close(dup(file));
    drain("close of a duplicate");
    close(file);
    drain("close");
    close(open("file", O_RDONLY));
    drain("open and close");
    close(open("file", O_WRONLY)); /* without O_TRUNC: since 6.10 its event comes behind that of the open */
    drain("open for writing and close");
    SHOW(ioctl(fd, FIONREAD, &file));
    SHOW(file);
    rename("file", "renamed");
    drain("rename");
    mkdir("directory", 0755);
    drain("mkdir");
    rename("renamed", "directory/inside");
    drain("move out of sight");
    rename("directory/inside", "back");
    drain("move back");
    link("back", "second");
    drain("link");
    symlink("back", "symbolic");
    drain("symlink");
    SHOW(inotify_add_watch(fd, "symbolic", IN_ATTRIB | IN_DONT_FOLLOW) > 0);
    unlink("second");
    drain("unlink of one name");
    unlink("symbolic");
    drain("unlink of a watched link");
    file = open("back", O_RDONLY);
    unlink("back");
    drain("open and unlink of the last name");
    close(file);
    drain("its close");
    SHOW(inotify_add_watch(fd, "directory", IN_ALL_EVENTS) > 0);
    close(open("directory", O_RDONLY | O_DIRECTORY));
    drain("open of a directory");
    mknod("directory/fifo", S_IFIFO | 0600, 0);
    drain("mknod");
    unlink("directory/fifo");
    drain("its unlink");
    rename("directory", "moved");
    drain("rename of a directory");
    rmdir("moved");
    drain("rmdir");

    close(open("one", O_CREAT | O_WRONLY, 0600)), close(open("two", O_CREAT | O_WRONLY, 0600));
    drain("two files");
    SHOW(inotify_add_watch(fd, "two", IN_ALL_EVENTS) > 0);
    drain("watch");
    rename("one", "two");
    drain("rename that replaces");
    int once = inotify_add_watch(fd, "two", IN_ATTRIB | IN_ONESHOT);
    SHOW(once > 0);
    chmod("two", 0400), chmod("two", 0600);
    drain("chmod twice");
    SHOW(inotify_rm_watch(fd, once));
    int here = inotify_add_watch(fd, ".", IN_CREATE);
    SHOW(here);
    close(open("another", O_CREAT | O_WRONLY, 0600));
    drain("what is wanted");
    SHOW(inotify_add_watch(fd, ".", IN_DELETE | IN_MASK_ADD));
    unlink("another"), close(open("third", O_CREAT | O_WRONLY, 0600));
    drain("added");
    SHOW(inotify_rm_watch(fd, here));
    drain("removed");
    SHOW(inotify_rm_watch(fd, here));

    fcntl(fd, F_SETFL, 0);
    SHOW(inotify_add_watch(fd, ".", IN_CREATE | IN_ACCESS | IN_CLOSE));
    pid_t child = fork();
    if (!child) {
        usleep(10000);
        close(open("of_a_child_with_a_long_name", O_CREAT | O_WRONLY, 0600));
        _exit(0);
    }
    struct pollfd one = {fd, POLLIN};
    SHOW(poll(&one, 1, -1));
    waitpid(child, NULL, 0);
    SHOW(read(fd, &c, 1));
    drain("what a child did");
    file = open("two", O_RDWR);
    write(file, "0123456789", 10);
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    map[0] = 'x';
    munmap(map, 4096);
    close(file);
    drain("a mapping");
    close(fd);
    return 0;
}
