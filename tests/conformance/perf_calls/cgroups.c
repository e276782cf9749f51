/* Control groups and their events: what each call answers, and the counts of user instructions.
   argv[1]: where cgroup2 is mounted. perf's controller must be enabled there. One CPU. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static int put(const char* path, const char* text) {
    int file = open(path, O_WRONLY);
    if (file < 0) return -1;
    int written = write(file, text, strlen(text));
    int error = errno;
    close(file);
    errno = error;
    return written;
}

static void show(const char* path) {
    char text[4096];
    int file = open(path, O_RDONLY);
    int size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (size < 0) {
        say(path, -1);
    } else {
        text[size] = 0;
        for (char* at = text; (at = strchr(at, '\n'));) *at = ' ';
        printf("%s: %s\n", path, text);
    }
    close(file);
}

static struct perf_event_attr attr_of(int type, long config) {
    struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config, .exclude_kernel = 1};
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return attr;
}

static int counting(struct perf_event_attr attr, int pid, int cpu, int group, unsigned long flags) {
    return syscall(SYS_perf_event_open, &attr, pid, cpu, group, flags);
}

static struct perf_event_attr instructions(void) { return attr_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS); }

static int of_group(const char* path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY);
    int event = counting(instructions(), directory, 0, -1, PERF_FLAG_PID_CGROUP);
    close(directory);
    return event;
}

static void tell(const char* what, int event) {
    uint64_t values[3] = {0};
    long size = read(event, values, sizeof values);
    printf("%s: %lu instructions, enabled %d, running as long %d (%ld bytes)\n", what, values[0], values[1] != 0,
           values[1] == values[2], size);
}

static void spin(long times) {
    for (volatile long i = 0; i < times; i++) continue;
}

static void files(void) {
    char pid[32];
    snprintf(pid, sizeof pid, "%d", getpid());
    say("mkdir a", mkdir("a", 0755));
    say("mkdir a/b", mkdir("a/b", 0700));
    say("mkdir c", mkdir("c", 0755));
    say("mkdir a again", mkdir("a", 0755));
    say("mkdir a/cgroup.procs", mkdir("a/cgroup.procs", 0755));
    say("mkdir with a newline", mkdir("x\ny", 0755));
    say("rmdir a", rmdir("a"));
    say("rmdir a/cgroup.procs", rmdir("a/cgroup.procs"));
    say("unlink", unlink("a/cgroup.procs"));
    say("rename", rename("a", "z"));
    say("symlink", symlink("a", "l"));
    say("link", link("a/cgroup.procs", "q"));
    say("mknod", mknod("f", S_IFIFO | 0644, 0));
    say("creat", open("x", O_CREAT | O_WRONLY, 0644));
    say("type", put("a/cgroup.type", "domain"));
    say("type of root", open("cgroup.type", O_RDONLY));
    say("events of root", open("cgroup.events", O_RDONLY));
    say("write controllers", put("a/cgroup.controllers", "x"));
    say("write events", put("a/cgroup.events", "x"));
    say("enable nothing", put("a/cgroup.subtree_control", "\n"));
    say("enable what is none", put("a/cgroup.subtree_control", "+nosuch"));
    say("enable without a sign", put("a/cgroup.subtree_control", "nosuch"));
    for (const char** text = (const char*[]){"99999999", "x", "-1", "", "1x", "0x", "00", 0}; *text; text++) {
        printf("move '%s' ", *text);
        say("", put("c/cgroup.procs", *text));
    }
    show("/proc/self/cgroup");
    say("move by number", put("a/b/cgroup.procs", pid) > 0);
    show("/proc/self/cgroup");
    show("a/cgroup.events");
    show("c/cgroup.events");
    show("a/cgroup.procs");
    say("rmdir with a process", rmdir("a/b"));
    say("a process in the middle", put("a/cgroup.procs", "0"));
    show("/proc/self/cgroup");
    show("a/cgroup.type");
    say("threaded, populated", put("a/cgroup.type", "threaded"));
    say("threaded, beside none", put("a/b/cgroup.type", "threaded"));
    show("a/b/cgroup.type");
    show("a/cgroup.type");
    say("mkdir a/d", mkdir("a/d", 0755));
    show("a/d/cgroup.type");
    say("process into invalid", put("a/d/cgroup.procs", "0"));
    say("thread into invalid", put("a/d/cgroup.threads", "0"));
    say("thread elsewhere", put("c/cgroup.threads", "0"));
    say("thread into threaded", put("a/b/cgroup.threads", "0"));
    show("/proc/self/cgroup");
    show("a/b/cgroup.procs");
    say("kill threaded", put("a/b/cgroup.kill", "1"));
    say("kill 0", put("a/cgroup.kill", "0"));
    say("kill x", put("a/cgroup.kill", "x"));
    show("a/cgroup.kill");
    say("home", put("cgroup.procs", "0"));
    show("/proc/self/cgroup");
    say("rmdir a/d", rmdir("a/d"));
    say("limit depth", put("c/cgroup.max.depth", "1"));
    say("limit -1", put("c/cgroup.max.depth", "-1"));
    say("limit x", put("c/cgroup.max.depth", "x"));
    show("c/cgroup.max.depth");
    say("mkdir c/e", mkdir("c/e", 0755));
    say("mkdir c/e/f", mkdir("c/e/f", 0755));
    say("limit descendants", put("c/cgroup.max.descendants", "1"));
    say("mkdir c/g", mkdir("c/g", 0755));
    say("no limit", put("c/cgroup.max.depth", "max\n"));
    show("c/cgroup.max.depth");
    say("rmdir c/e", rmdir("c/e"));
}

static void dead(void) {
    say("mkdir c/h", mkdir("c/h", 0755));
    int directory = open("c/h", O_RDONLY | O_DIRECTORY), procs = open("c/h/cgroup.procs", O_RDWR);
    pid_t child = fork();
    if (!child) {
        put("c/h/cgroup.procs", "0");
        _exit(0);
    }
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    char path[64];
    show("c/h/cgroup.procs");
    show("c/h/cgroup.events");
    say("rmdir c/h", rmdir("c/h"));
    waitpid(child, 0, 0);
    say("read of a removed one", read(procs, path, sizeof path));
    say("write of a removed one", write(procs, "0", 1));
    say("open in a removed one", openat(directory, "cgroup.procs", O_RDONLY));
    say("mkdir in a removed one", mkdirat(directory, "x", 0755));
    say("event of a removed one", counting(instructions(), directory, 0, -1, PERF_FLAG_PID_CGROUP));
    close(directory);
    close(procs);
}

static void opening(void) {
    int directory = open("a", O_RDONLY | O_DIRECTORY), path = open("a", O_PATH),
        file = open("a/cgroup.procs", O_RDONLY);
    int other = open("/proc", O_RDONLY | O_DIRECTORY);
    struct perf_event_attr attr = instructions(), wrong = attr_of(77, 0);
    say("no cpu", counting(attr, directory, -1, -1, PERF_FLAG_PID_CGROUP));
    say("no group", counting(attr, -1, 0, -1, PERF_FLAG_PID_CGROUP));
    say("no group, bad leader", counting(attr, -1, 0, 999, PERF_FLAG_PID_CGROUP));
    say("bad leader", counting(attr, directory, 0, 999, PERF_FLAG_PID_CGROUP));
    say("cpu 77", counting(attr, directory, 77, -1, PERF_FLAG_PID_CGROUP));
    say("no descriptor", counting(attr, 999, 0, -1, PERF_FLAG_PID_CGROUP));
    say("no descriptor, no type", counting(wrong, 999, 0, -1, PERF_FLAG_PID_CGROUP));
    say("no directory", counting(attr, file, 0, -1, PERF_FLAG_PID_CGROUP));
    say("O_PATH", counting(attr, path, 0, -1, PERF_FLAG_PID_CGROUP));
    say("another directory", counting(attr, other, 0, -1, PERF_FLAG_PID_CGROUP));
    int leader = counting(attr, directory, 0, -1, PERF_FLAG_PID_CGROUP), plain = counting(attr, -1, 0, -1, 0);
    say("sibling", counting(attr, directory, 0, leader, PERF_FLAG_PID_CGROUP) > 2);
    say("sibling of no group", counting(attr, -1, 0, leader, 0) > 2);
    say("sibling of whoever", counting(attr, directory, 0, plain, PERF_FLAG_PID_CGROUP));
    int c = open("c", O_RDONLY | O_DIRECTORY);
    say("sibling of another", counting(attr, c, 0, leader, PERF_FLAG_PID_CGROUP));
    struct perf_event_attr sigtrap = attr;
    sigtrap.sigtrap = sigtrap.remove_on_exec = 1;
    say("sigtrap", counting(sigtrap, directory, 0, -1, PERF_FLAG_PID_CGROUP));
    for (int each = 3; each < 64; each++) close(each);
}

static void counts(void) {
    int all = of_group("."), a = of_group("a"), b = of_group("a/b"), c = of_group("c");
    int switches = open("a", O_RDONLY | O_DIRECTORY), into = open("a/b/cgroup.procs", O_WRONLY);
    int out = open("cgroup.procs", O_WRONLY);
    tell("a before", a);
    write(into, "0", 1);
    spin(1000);
    write(out, "0", 1);
    tell("a", a);
    tell("a/b", b);
    tell("c", c);
    uint64_t value = 0;
    printf("the root more than a: %d\n", read(all, &value, 8) < 0 && errno == ENOSPC);
    pid_t child = fork();
    if (!child) {
        write(into, "0", 1);
        if (!fork()) {
            spin(100);
            syscall(SYS_exit_group, 0);
        }
        wait(0);
        syscall(SYS_exit_group, 0);
    }
    waitpid(child, 0, 0);
    uint64_t first[3], second[3];
    printf("a read of a and of a/b: %ld %ld\n", (long)read(a, first, sizeof first),
           (long)read(b, second, sizeof second));
    printf("equal %d, of both children %d\n", first[0] == second[0], first[0] > 9000);
    ioctl(b, PERF_EVENT_IOC_DISABLE, 0);
    ioctl(a, PERF_EVENT_IOC_RESET, 0);
    ioctl(b, PERF_EVENT_IOC_RESET, 0);
    write(into, "0", 1);
    spin(10);
    ioctl(b, PERF_EVENT_IOC_ENABLE, 0);
    spin(10);
    write(out, "0", 1);
    tell("a, reset", a);
    tell("a/b, enabled within", b);
    close(switches);
    for (int each = 3; each < 64; each++) close(each);
}

static void switches(void) {
    struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES);
    attr.exclude_kernel = 0;
    int all = counting(attr, -1, 0, -1, 0), there[2], back[2], into = open("a/b/cgroup.procs", O_WRONLY);
    pipe(there), pipe(back);
    uint64_t before[3], after[3];
    pid_t child = fork();
    char byte = 0;
    if (!child) {
        write(into, "0", 1);
        for (int turn = 0; turn < 20; turn++) read(there[0], &byte, 1), write(back[1], &byte, 1);
        _exit(0);
    }
    usleep(100000); /* until the child is there, and waits */
    read(all, before, sizeof before);
    for (int turn = 0; turn < 20; turn++) write(there[1], &byte, 1), read(back[0], &byte, 1);
    read(all, after, sizeof after);
    printf("switches of groups: at least 40 %d\n", after[0] - before[0] >= 40);
    waitpid(child, 0, 0);
    attr.exclude_kernel = 1;
    say("of user mode", counting(attr, -1, 0, -1, 0) > 2);
    for (int each = 3; each < 64; each++) close(each);
}

static uint64_t handle_of(const char* path, int flags) {
    struct {
        struct file_handle head;
        uint64_t id;
    } handle = {.head.handle_bytes = 8};
    int mount;
    if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount, flags)) say("handle", -1);
    printf("handle of %s: %u bytes of type %#x\n", path, handle.head.handle_bytes, handle.head.handle_type);
    return *(uint64_t*)handle.head.f_handle;
}

static void records(void) {
    struct stat status;
    struct file_handle small = {.handle_bytes = 0}, large = {.handle_bytes = 999};
    int mount;
    stat("a/b", &status);
    printf("the inode number is the handle: %d\n", handle_of("a/b", 0) == status.st_ino);
    say("handle without room", name_to_handle_at(AT_FDCWD, "a/b", &small, &mount, 0));
    printf("it needs %u\n", small.handle_bytes);
    say("handle of 999 bytes", name_to_handle_at(AT_FDCWD, "a/b", &large, &mount, 0));
    say("handle with flags", name_to_handle_at(AT_FDCWD, "a/b", &small, &mount, 0x4));
    say("handle of nothing", name_to_handle_at(AT_FDCWD, "nothing", &small, &mount, 0));
    struct perf_event_attr attr = instructions();
    attr.sample_period = 500;
    attr.sample_type = PERF_SAMPLE_CGROUP;
    attr.cgroup = 1;
    int event = counting(attr, 0, -1, -1, 0);
    struct perf_event_mmap_page* page = mmap(0, 9 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    int into = open("a/b/cgroup.procs", O_WRONLY), out = open("cgroup.procs", O_WRONLY);
    write(into, "0", 1);
    spin(1000);
    write(out, "0", 1);
    mkdir("c/new group", 0755);
    stat("c/new group", &status);
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    uint64_t inside = 0, root = 0, others = 0, b;
    struct stat of_b;
    stat("a/b", &of_b);
    b = of_b.st_ino;
    char* data = (char*)page + page->data_offset;
    for (uint64_t at = 0; at < page->data_head;) {
        struct perf_event_header* header = (void*)(data + at);
        uint64_t id = *(uint64_t*)(header + 1);
        if (header->type == PERF_RECORD_SAMPLE) {
            inside += id == b;
            root += id == 1;
            others += id != b && id != 1;
        } else if (header->type == PERF_RECORD_CGROUP) {
            printf("CGROUP of %u bytes, misc %u, the inode's %d: %s\n", header->size, header->misc, id == status.st_ino,
                   (char*)(header + 1) + 8);
        } else {
            printf("record %u\n", header->type);
        }
        at += header->size;
    }
    printf("samples of a/b %lu, some of the root %d, others %lu\n", inside, root > 0, others);
    rmdir("c/new group");
}

static void born(const char* what, unsigned long flags, unsigned long cgroup, size_t size) {
    struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD, .cgroup = cgroup};
    long child = syscall(SYS_clone3, &arguments, size);
    if (!child) {
        show("/proc/self/cgroup");
        _exit(0);
    }
    say(what, child > 0 ? 1 : child);
    if (child > 0) waitpid(child, 0, 0);
}

static void births(void) {
    int directory = open("c", O_RDONLY | O_DIRECTORY), path = open("a/b", O_PATH),
        file = open("c/cgroup.procs", O_RDONLY);
    born("into c", CLONE_INTO_CGROUP, directory, sizeof(struct clone_args));
    born("into a/b by its path, as a process", CLONE_INTO_CGROUP, path, sizeof(struct clone_args));
    born("without the flag", 0, directory, sizeof(struct clone_args));
    born("into a file", CLONE_INTO_CGROUP, file, sizeof(struct clone_args));
    born("into nothing", CLONE_INTO_CGROUP, 999, sizeof(struct clone_args));
    born("into -1", CLONE_INTO_CGROUP, -1, sizeof(struct clone_args));
    born("without room", CLONE_INTO_CGROUP, directory, 80);
    mkdir("a/d", 0755);
    int invalid = open("a/d", O_RDONLY | O_DIRECTORY);
    born("into an invalid one", CLONE_INTO_CGROUP, invalid, sizeof(struct clone_args));
    rmdir("a/d");
    born("into a removed one", CLONE_INTO_CGROUP, invalid, sizeof(struct clone_args));
    for (int each = 3; each < 64; each++) close(each);
}

static void* thread(void* _) {
    say("a thread of its own", put("a/b/cgroup.threads", "0"));
    show("/proc/thread-self/cgroup");
    spin(1000);
    return 0;
}

static void threads(void) {
    say("home", put("a/cgroup.procs", "0"));
    int a = of_group("a"), b = of_group("a/b");
    pthread_t id;
    pthread_create(&id, 0, thread, 0);
    pthread_join(id, 0);
    show("/proc/self/cgroup");
    uint64_t first[3], second[3];
    read(a, first, sizeof first);
    read(b, second, sizeof second);
    printf("the thread's instructions are in b %d, all in a %d\n", second[0] > 4000, first[0] > second[0]);
    say("out", put("cgroup.procs", "0"));
}

int main(int argc, char** argv) {
    if (argc != 2 || chdir(argv[1])) return 2;
    setvbuf(stdout, 0, _IOLBF, 0);
    files();
    dead();
    opening();
    counts();
    switches();
    records();
    births();
    threads();
    usleep(10000); /* whoever has ended is gone */
    say("rmdir a/b", rmdir("a/b"));
    say("rmdir a", rmdir("a"));
    say("rmdir c", rmdir("c"));
}
