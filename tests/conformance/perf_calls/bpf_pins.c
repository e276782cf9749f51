// Objects with names in a file system of type bpf: who may have them, what can be done with their files.

#include "bpf.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define PATH_FD (1 << 14)  // BPF_F_PATH_FD
#define ROOT "/sys/fs/bpf/"

static int pin_at(int fd, const char *path, unsigned flags, int directory) {
    union bpf_attr attr = {0};
    attr.pathname = (uintptr_t)path;
    attr.bpf_fd = fd;
    attr.file_flags = flags;
    memcpy((char *)&attr + 16, &directory, 4);  // path_fd, which older headers do not have
    return bpf(BPF_OBJ_PIN, &attr);
}

static int pin(int fd, const char *path) {
    return pin_at(fd, path, 0, 0);
}

static int get(const char *path, unsigned flags) {
    union bpf_attr attr = {0};
    attr.pathname = (uintptr_t)path;
    attr.file_flags = flags;
    return bpf(BPF_OBJ_GET, &attr);
}

static void say_closed(const char *what, int fd) {
    say(what, fd);
    if (fd >= 0) close(fd);
}

static void names(int map) {
    struct statfs of;
    statfs(ROOT, &of);
    printf("file system %lx\n", (long)of.f_type & 0xffffffff);
    say("a map", pin(map, ROOT "map"));
    say("again", pin(map, ROOT "map"));
    say("with a dot", pin(map, ROOT "a.map"));
    say("nowhere", pin(map, ROOT "nowhere/map"));
    say("in another file system", pin(map, "/dev/map"));
    say("a closed descriptor", pin(1000, ROOT "other"));
    say("a file", pin(1, ROOT "other"));
    say("an empty name", pin(map, ""));
    say("flags", pin_at(map, ROOT "other", 1, 0));
    say("a directory without its flag", pin_at(map, ROOT "other", 0, 5));
    struct stat status;
    stat(ROOT "map", &status);
    printf("mode %o, %d names, %ld bytes\n", status.st_mode, (int)status.st_nlink, (long)status.st_size);
    umask(0);
    say("a directory", mkdir(ROOT "folder", 0755));
    int folder = open(ROOT "folder", O_RDONLY | O_DIRECTORY);
    say("below it", pin_at(map, "map", PATH_FD, folder));
    stat(ROOT "folder/map", &status);
    printf("mode %o\n", status.st_mode);
    say("it is not empty", rmdir(ROOT "folder"));
    say("another name", link(ROOT "map", ROOT "second"));
    say("a new name", rename(ROOT "second", ROOT "folder/second"));
    say("a symbolic link", symlink("map", ROOT "symbolic"));
    say_closed("by that", get(ROOT "symbolic", 0));
    say_closed("is opened", open(ROOT "map", O_RDONLY));
    say_closed("is made", open(ROOT "new", O_RDWR | O_CREAT, 0600));
    say("a FIFO", mknod(ROOT "new", S_IFIFO | 0600, 0));
    say("a dot", mkdir(ROOT "a.b", 0755));
    say("a dot that is looked for", stat(ROOT "a.b", &status));
    say("into another file system", rename(ROOT "map", "/dev/shm/map"));
    say("linked there", link(ROOT "map", "/dev/shm/map"));
    unlink(ROOT "symbolic"), unlink(ROOT "folder/map");
    close(folder);
}

static void objects(int map) {
    int key = 0, id;
    long value = 42, read = 0;
    element(BPF_MAP_UPDATE_ELEM, map, &key, &value, 0);
    struct bpf_map_info info = {0};
    union bpf_attr attr = {0};
    attr.info.bpf_fd = map;
    attr.info.info_len = sizeof info;
    attr.info.info = (uintptr_t)&info;
    bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
    id = info.id;
    close(map);
    map = get(ROOT "map", 0);
    say("the map", map);
    element(BPF_MAP_LOOKUP_ELEM, map, &key, &read, 0);
    printf("holds %ld\n", read);
    close(map);
    map = get(ROOT "map", BPF_F_RDONLY);
    say("it is only read", map);
    say("written", element(BPF_MAP_UPDATE_ELEM, map, &key, &value, 0));
    close(map);
    say_closed("neither", get(ROOT "map", BPF_F_RDONLY | BPF_F_WRONLY));
    say_closed("other flags", get(ROOT "map", BPF_F_NUMA_NODE));
    say_closed("what is not there", get(ROOT "nothing", 0));
    say_closed("a directory", get(ROOT "folder", 0));
    say_closed("a file", get("/proc/version", 0));
    say("taken away", unlink(ROOT "map"));
    attr = (union bpf_attr){.map_id = id};
    map = bpf(BPF_MAP_GET_FD_BY_ID, &attr);
    say("it has another name", map);
    close(map);
    say("that is taken away", unlink(ROOT "folder/second"));
    usleep(100000);  // the last of it goes later
    attr = (union bpf_attr){.map_id = id};
    say_closed("then it has gone", bpf(BPF_MAP_GET_FD_BY_ID, &attr));
    say("the directory", rmdir(ROOT "folder"));
}

static void programs(void) {
    int counters = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), zero = 0;
    long value = -1;
    struct bpf_insn counting[] = {
        LOAD(BPF_DW, 7, 1, 8), JUMP(BPF_JNE, 7, __NR_getppid, 9), MOV(6, 1), STORE(BPF_W, 10, -4, 0), MOVX(2, 10),
        ALU(BPF_ADD, 2, -4), MAP(1, counters), CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 1),
        INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 6, 0, BPF_ADD), MOV(0, 0), EXIT,
    };
    int program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, counting, LENGTH(counting));
    say("a program", pin(program, ROOT "program"));
    close(program);
    program = get(ROOT "program", 0);
    say("it is found", program);
    say_closed("to be read", get(ROOT "program", BPF_F_RDONLY));
    union bpf_attr attr = {0};
    attr.raw_tracepoint.name = (uintptr_t) "sys_enter";
    attr.raw_tracepoint.prog_fd = program;
    int link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
    say("a link", pin(link, ROOT "link"));
    close(link);
    close(program);
    for (int i = 0; i < 3; i++) syscall(__NR_getppid);
    element(BPF_MAP_LOOKUP_ELEM, counters, &zero, &value, 0);
    printf("it runs: %ld\n", value);
    say_closed("the link to be read", get(ROOT "link", BPF_F_RDONLY));
    say_closed("the link", get(ROOT "link", 0));
    unlink(ROOT "link");
    usleep(100000);
    for (int i = 0; i < 3; i++) syscall(__NR_getppid);
    element(BPF_MAP_LOOKUP_ELEM, counters, &zero, &value, 0);
    printf("it runs no more: %ld\n", value);
    unlink(ROOT "program");
}

static void permissions(void) {
    int map = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
    chmod(ROOT, 01777);
    say("for all to read", pin(map, ROOT "public"));
    chmod(ROOT "public", 0644);
    say("for root alone", pin(map, ROOT "private"));
    chmod(ROOT "private", 0600);
    int child = fork();
    if (!child) {
        setresuid(1000, 1000, 1000);
        say_closed("another user reads", get(ROOT "public", BPF_F_RDONLY));
        say_closed("reads and writes", get(ROOT "public", 0));
        say_closed("reads root's", get(ROOT "private", BPF_F_RDONLY));
        say("takes root's away", unlink(ROOT "private"));
        say("pins", pin(map, ROOT "own"));
        struct stat status;
        stat(ROOT "own", &status);
        printf("of user %d\n", status.st_uid);
        say("and takes away", unlink(ROOT "own"));
        _exit(0);
    }
    waitpid(child, 0, 0);
    say("root takes away", unlink(ROOT "public"));
    say("root's own", unlink(ROOT "private"));
    DIR *root = opendir(ROOT);
    int left = 0;
    while (readdir(root)) left++;
    printf("%d names are left\n", left - 2);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    struct statfs of;
    if (!statfs(ROOT, &of) && (of.f_type & 0xffffffff) != 0xcafe4a11) mount("bpf", ROOT, "bpf", 0, "mode=700");
    mkdir("/dev/shm", 01777);
    int map = new_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
    names(map);
    objects(map);
    programs();
    permissions();
}
