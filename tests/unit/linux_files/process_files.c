// What open files of /proc/PID say while the process lives, as a zombie, and when it has been waited for; and that a
// read at the beginning makes a text anew.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* const names[] = {
    "stat",      "status",        "statm",       "maps",    "smaps",     "smaps_rollup", "cmdline",
    "auxv",      "comm",          "limits",      "cgroup",  "mounts",    "mountinfo",    "wchan",
    "oom_score", "oom_score_adj", "personality", "uid_map", "setgroups",
};
enum { FILES = sizeof names / sizeof *names };
static char text[1 << 16];

static ssize_t read_all(int descriptor) {
    ssize_t size = pread(descriptor, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    return size;
}

static void tell(const char* when, const int* descriptors) {
    for (int i = 0; i < FILES; i++) {
        ssize_t size = read_all(descriptors[i]);
        printf("%s %s: %s\n", when, names[i], size < 0 ? strerror(errno) : size == 0 ? "empty" : "text");
    }
}

// What Linux says of a zombie: fields 20 (threads), 23 to 28 and 45 to 52 of stat (its memory, and how it ended), and
// rows of status.
static void tell_of_zombie(int stat, int status, int statm) {
    read_all(stat);
    int field = 2;
    for (char* word = strtok(strrchr(text, ')') + 1, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        field++;
        if (field == 3 || field == 20 || (field >= 23 && field <= 28) || (field >= 45 && field <= 52)) {
            printf("zombie's stat %d: %s\n", field, word);
        }
    }
    read_all(status);
    for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "State", 5) == 0 || strncmp(line, "Vm", 2) == 0 || strncmp(line, "Threads", 7) == 0 ||
            strncmp(line, "FDSize", 6) == 0 || strncmp(line, "Umask", 5) == 0) {
            puts(line);
        }
    }
    read_all(statm);
    fputs(text, stdout);
}

static int entries_of(const char* path, pid_t wanted) {
    DIR* directory = opendir(path);
    int found = 0;
    for (struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        found += atoi(entry->d_name) == wanted;
    }
    return found;
}

// Who looks for a zombie finds it, but no directory, program or file of its own.
static void look_for(pid_t child) {
    static const char* const links[] = {"cwd", "root", "exe", "fd/0"};
    char path[64];
    printf("in /proc: %d\n", entries_of("/proc", child));
    snprintf(path, sizeof path, "/proc/%d/task", child);
    printf("in its task/: %d\n", entries_of(path, child));
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", child, child);
    printf("its thread's comm: %s\n", access(path, R_OK) == 0 ? "there" : strerror(errno));
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", child, links[i]);
        printf("%s: %s\n", links[i], readlink(path, text, sizeof text) < 0 ? strerror(errno) : "leads somewhere");
    }
    snprintf(path, sizeof path, "/proc/%d/cmdline", child);
    int cmdline = open(path, O_RDONLY);
    printf("cmdline: %s\n", cmdline < 0 ? strerror(errno) : read_all(cmdline) == 0 ? "empty" : "text");
}

static void rename_and_tell(int comm, const char* name, off_t offset, size_t size) {
    prctl(PR_SET_NAME, name);
    ssize_t got = pread(comm, text, size, offset);
    printf("%s at %d: %.*s\n", name, (int)offset, (int)got, text);
}

int main(void) {
    int go[2];
    if (pipe(go) != 0) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 0 ? 3 : 4);
    }
    int descriptors[FILES];
    for (int i = 0; i < FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/%s", child, names[i]);
        descriptors[i] = open(path, O_RDONLY);
    }
    tell("living", descriptors);
    close(go[1]);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    tell("zombie", descriptors);
    tell_of_zombie(descriptors[0], descriptors[1], descriptors[2]);
    look_for(child);
    waitpid(child, NULL, 0);
    tell("gone", descriptors);
    look_for(child);

    int comm = open("/proc/self/comm", O_RDONLY);
    rename_and_tell(comm, "first", 0, 3);
    rename_and_tell(comm, "second", 3, 2);  // goes on where the read before ended: as the text was then
    rename_and_tell(comm, "third", 1, 9);   // elsewhere
    rename_and_tell(comm, "fourth", 0, 9);
    return 0;
}
