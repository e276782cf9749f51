// What a program that a shell has started sees of the terminal on which both are. Prints what each call answers.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "../unit/linux_calls/show.h"

static int terminal;

// The fields tty_nr and tpgid of /proc/self/stat.
static void told(int* device, int* group) {
    char text[1024] = "";
    int file = open("/proc/self/stat", O_RDONLY);
    read(file, text, sizeof text - 1);
    close(file);
    sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %d %d", device, group);
}

static void usual(void) {
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
}

// What stops or ends a child that does this, in the background.
static void child(void (*does)(void)) {
    int status;
    pid_t pid = fork();
    if (!pid) {
        usual();
        setpgid(0, 0);
        does();
        _exit(0);
    }
    setpgid(pid, pid);
    SHOW(waitpid(pid, &status, WUNTRACED) == pid);
    SHOW(WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

static void takes_the_foreground(void) { SHOW(tcsetpgrp(terminal, getpgrp())); }

static void takes_it_unheard(void) {
    signal(SIGTTOU, SIG_IGN);
    SHOW(tcsetpgrp(terminal, getpgrp()));
    SHOW(tcgetpgrp(terminal) == getpgrp());
}

static void changes_modes(void) {
    struct termios modes;
    SHOW(tcgetattr(terminal, &modes));
    SHOW(tcsetattr(terminal, TCSANOW, &modes));
}

static void reads(void) {
    char c;
    SHOW(read(terminal, &c, 1));
}

static void leaves_the_session(void) {
    int done[2];
    char c;
    pipe(done);
    pid_t pid = fork();
    if (!pid) {
        int device, group;
        SHOW(setsid() == getpid());
        SHOW(tcgetpgrp(terminal));
        SHOW(ioctl(terminal, TIOCGSID, &group));
        SHOW(tcsetpgrp(terminal, getpgrp()));
        SHOW(open("/dev/tty", O_RDWR));
        told(&device, &group);
        SHOW(device);
        SHOW(group);
        write(done[1], "x", 1);
        pause();
    }
    read(done[0], &c, 1);
    signal(SIGTTOU, SIG_IGN);
    SHOW(tcsetpgrp(terminal, pid));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void) {
    int device, group, session;
    struct stat status;
    terminal = open("/dev/tty", O_RDWR);
    SHOW(terminal >= 0);
    signal(SIGTTOU, SIG_IGN);
    setpgid(0, 0);
    SHOW(tcsetpgrp(terminal, getpgrp()));
    SHOW(tcgetpgrp(terminal) == getpgrp());
    ioctl(terminal, TIOCGSID, &session);
    SHOW(session == getsid(0));
    fstat(0, &status);
    told(&device, &group);
    SHOW(device == status.st_rdev);
    SHOW(group == getpgrp());
    SHOW(tcsetpgrp(terminal, -3));
    SHOW(tcsetpgrp(terminal, 999999));
    SHOW(ioctl(terminal, TIOCSPGRP, 1L));
    child(takes_the_foreground);
    child(changes_modes);
    child(reads);
    child(leaves_the_session);
    child(takes_it_unheard);
    told(&device, &group);
    SHOW(group == getpgrp());
    SHOW(tcsetpgrp(terminal, getpgrp()));
    return 0;
}
