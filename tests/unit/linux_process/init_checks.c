/* Who process 1 is: root's, asleep, heedless of signals, and parent of orphans. Prints what it finds. Run by
   test_init.py as root, and as another user by itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* what, long result) {
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : result ? "something" : "0");
}

static void show(const char* name, int most) {
    char line[256];
    FILE* file = fopen(name, "r");
    while (file && most-- && fgets(line, sizeof line, file)) fputs(line, stdout);
    if (file) fclose(file);
}

static void ask(void) {
    say("is it there", kill(1, 0));
    say("SIGTERM", kill(1, SIGTERM));
    say("SIGKILL", kill(1, SIGKILL));
    say("SIGSTOP", kill(1, SIGSTOP));
    say("traced", ptrace(PTRACE_ATTACH, 1, 0, 0));
    say("to its group", kill(-getpgrp(), 0));
}

int main(void) {
    struct stat status;
    char path[64];
    int ends[2];
    setvbuf(stdout, NULL, _IONBF, 0);
    show("/proc/1/comm", 1);
    show("/proc/1/stat", 1);
    printf("%s: %zd\n", "/proc/1/exe", readlink("/proc/1/exe", path, sizeof path));
    say("owner", stat("/proc/1", &status) ? -1 : status.st_uid);
    say("all others", kill(-1, 0)); /* of whom there are none but init */
    ask();
    if (pipe(ends)) return 1;
    if (!fork()) {
        if (!fork()) {
            while (getppid() != 1) usleep(10);
            printf("adopted by %d\n", getppid());
            _exit(0);
        }
        _exit(0);
    }
    close(ends[1]);
    wait(NULL);
    if (read(ends[0], path, 1)) return 2; /* until the grandchild has ended */
    if (!fork()) {
        if (setuid(1000)) _exit(3);
        ask();
        say("its parent", kill(getppid(), 0));
        say("all others", kill(-1, SIGTERM));
        _exit(0);
    }
    wait(NULL);
    show("/proc/1/stat", 1);
    return 0;
}
