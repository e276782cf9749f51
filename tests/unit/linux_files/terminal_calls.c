// Prints what pseudo-terminals do with what is typed and written, and with sessions, so that two kernels can be compared.
#include "../linux_calls/show.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

static int master, slave;
static char name[64];
static struct termios usual;

// Linux hands on what was written in a thread of its own; a poll of who finds nothing to read waits for that.
static void settle(void) {
    struct pollfd readers[] = {{slave, POLLIN, 0}, {master, POLLIN, 0}};
    poll(readers, 2, 0);
    usleep(20000);
}

static void show_bytes(const char* what, const char* data, long size) {
    printf("  %s %ld:", what, size);
    for (int i = 0; i < size && i < 160; i++) {
        unsigned char c = data[i];
        if (c < 32 || c > 126 || c == '\\')
            printf("\\%02x", c);
        else
            putchar(c);
    }
    putchar('\n');
}

static void show_end(const char* what, long got) {
    printf("  %s then %s\n", what, got == 0 ? "end" : strerror(errno));
    fflush(stdout);
}

// What one read after the other gives: the lines of a slave, the packets of a master.
static void show(const char* what, int file) {
    char data[8192];
    long got;
    while ((got = read(file, data, sizeof data)) > 0) show_bytes(what, data, got);
    show_end(what, got);
}

// What a master reads, in however many parts: it may read while more is on its way.
static void show_seen(const char* what) {
    char data[8192];
    long got, size = 0;
    while ((got = read(master, data + size, sizeof data - size)) > 0) size += got;
    if (size) show_bytes(what, data, size);
    show_end(what, got);
}

static void open_pair(void) {
    master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master);
    unlockpt(master);
    ptsname_r(master, name, sizeof name);
    slave = open(name, O_RDWR | O_NOCTTY);
    fcntl(master, F_SETFL, O_NONBLOCK);
    fcntl(slave, F_SETFL, O_NONBLOCK);
    tcgetattr(slave, &usual);
}

static void typed(const char* text) {
    long length = strlen(text);
    printf("typed %ld\n", length);
    if (write(master, text, length) != length) printf("  only a part\n");
    settle();
    show_seen("seen");
    show("read", slave);
    show_seen("seen after");
}

static void written(const char* text) {
    printf("written %ld\n", (long)write(slave, text, strlen(text)));
    settle();
    show_seen("seen");
}

static void with(tcflag_t input, tcflag_t output, tcflag_t local) {
    struct termios changed = usual;
    changed.c_iflag = input;
    changed.c_oflag = output;
    changed.c_lflag = local;
    printf("modes %o %o %o: %d\n", input, output, local, tcsetattr(slave, TCSANOW, &changed));
}

static void lines(void) {
    printf("%o %o %o %o\n", usual.c_iflag, usual.c_oflag, usual.c_cflag, usual.c_lflag);
    for (int i = 0; i < 17; i++) printf("%d ", usual.c_cc[i]);
    puts("");
    SHOW(isatty(slave));
    SHOW(isatty(master));
    typed("one\ntwo\n");
    typed("abc\177\177x\177\177\177\177y\n");
    typed("first second\tthird\027\027x\n");
    typed("all gone\025rest\n");
    typed("a\tb\t\177\177c\n");
    typed("\001b\177\177c\n");
    typed("\026\003\026\n\026\026.\n");
    typed("half\022 again\n");
    typed("no newline\004");
    typed("\004");
    typed("x\r\n\ry\n");
    typed("over\023written");
    typed("\021\n");
    typed("dropped\003kept\034last\n");
    typed("\032z\n");
    typed("gr\303\274\303\237e\177\177\n");
    with(usual.c_iflag | IUTF8, usual.c_oflag, usual.c_lflag);
    typed("gr\303\274\303\237e\177\177\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~ECHO);
    typed("secret\177\n");
    with(usual.c_iflag, usual.c_oflag, (usual.c_lflag & ~ECHO) | ECHONL);
    typed("secret\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~ECHOE);
    typed("ab\177c\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~ECHOKE);
    typed("ab\025c\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~ECHOCTL);
    typed("a\001\002\177b\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~ISIG);
    typed("a\003b\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag | NOFLSH);
    typed("a\003b\n");
    with(usual.c_iflag | INLCR | IGNCR, usual.c_oflag, usual.c_lflag);
    typed("a\rb\nc\004");
    with((usual.c_iflag & ~ICRNL) | ISTRIP | IXANY, usual.c_oflag, usual.c_lflag);
    typed("a\rb\341\n\023cd\n");
    with(usual.c_iflag, usual.c_oflag, usual.c_lflag & ~IEXTEN);
    typed("a\026b c\027d\n");
    struct termios ends = usual;
    ends.c_cc[VEOL] = ';';
    ends.c_cc[VEOL2] = ',';
    ends.c_cc[VERASE] = '#';
    ends.c_cc[VINTR] = 0;
    SHOW(tcsetattr(slave, TCSAFLUSH, &ends));
    typed("a;b,c##d\003\n");
    SHOW(tcsetattr(slave, TCSANOW, &usual));
    static char much[6000];
    memset(much, 'm', 5000);
    strcpy(much + 5000, "\nnext\n");
    SHOW(write(master, much, strlen(much)));
    settle();
    show("read", slave);
    tcflush(master, TCIFLUSH);
    show_seen("seen");
}

static void raw(void) {
    struct termios changed = usual;
    cfmakeraw(&changed);
    SHOW(tcsetattr(slave, TCSANOW, &changed));
    typed("a\003\r\n\177\004b");
    written("x\ny\n");
    changed.c_cc[VMIN] = 0;
    SHOW(tcsetattr(slave, TCSANOW, &changed));
    fcntl(slave, F_SETFL, 0);
    char c[16];
    SHOW(read(slave, c, 1));
    changed.c_cc[VTIME] = 1;
    SHOW(tcsetattr(slave, TCSANOW, &changed));
    SHOW(read(slave, c, 1));
    write(master, "abc", 3);
    SHOW(read(slave, c, 2));
    SHOW(read(slave, c, 2));
    changed.c_cc[VMIN] = 3;
    changed.c_cc[VTIME] = 0;
    SHOW(tcsetattr(slave, TCSANOW, &changed));
    write(master, "de", 2);
    settle();
    struct pollfd wanted = {slave, POLLIN | POLLOUT, 0};
    SHOW(poll(&wanted, 1, 0));
    SHOW(wanted.revents);
    int count;
    SHOW(ioctl(slave, FIONREAD, &count));
    SHOW(count);
    write(master, "f", 1);
    SHOW(read(slave, c, 16));
    fcntl(slave, F_SETFL, O_NONBLOCK);
    write(master, "left over", 9);
    settle();
    SHOW(tcsetattr(slave, TCSANOW, &usual));
    SHOW(ioctl(slave, FIONREAD, &count));
    SHOW(count);
    show("read", slave);
    show_seen("seen");
    with(usual.c_iflag, OPOST | OCRNL | ONOCR | ONLRET, usual.c_lflag);
    written("a\rb\n\rc\n");
    with(usual.c_iflag, OPOST | ONLCR | XTABS | OLCUC, usual.c_lflag);
    written("a\tbcd\tx\n\ty\n");
    with(usual.c_iflag, ONLCR, usual.c_lflag);
    written("a\n");
    SHOW(tcsetattr(slave, TCSANOW, &usual));
}

static void window(void) {
    struct winsize size = {25, 81, 3, 4}, got = {0};
    int number, fd;
    SHOW(ioctl(master, TIOCSWINSZ, &size));
    SHOW(ioctl(slave, TIOCGWINSZ, &got));
    printf("%d %d %d %d\n", got.ws_row, got.ws_col, got.ws_xpixel, got.ws_ypixel);
    SHOW(ioctl(master, TIOCGPTN, &number));
    SHOW(ioctl(slave, TIOCGPTN, &number));
    SHOW(ioctl(slave, TIOCGPGRP, &number));
    SHOW(ioctl(slave, TIOCGSID, &number));
    SHOW(ioctl(master, TIOCGPGRP, &number));
    SHOW(number);
    SHOW(ioctl(slave, TIOCGETD, &number));
    SHOW(tcflush(slave, 9));
    SHOW(tcdrain(slave));
    SHOW(tcsendbreak(slave, 0));
    SHOW(tcflow(slave, TCOOFF));
    SHOW(write(slave, "held", 4));
    SHOW(tcflow(slave, TCOON));
    SHOW(write(slave, "let go", 6));
    settle();
    SHOW(tcflush(slave, TCOFLUSH));
    settle();
    show_seen("seen");
    struct stat at;
    SHOW(fstat(slave, &at));
    printf("%o %d\n", at.st_mode & S_IFMT, (int)(at.st_rdev >> 8));  // the rest is how it was mounted
    SHOW(strcmp(ttyname(slave), name));
    SHOW((fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY)) >= 0);
    SHOW(close(fd));
}

static volatile sig_atomic_t heard[65];
static void hear(int number) { heard[number]++; }

static void report(const char* what) {
    printf("%s:", what);
    for (int i = 1; i < 65; i++)
        if (heard[i]) printf(" %s %d", strsignal(i), (int)heard[i]);
    puts("");
    fflush(stdout);
    memset((void*)heard, 0, sizeof heard);
}

// A session with the terminal, whose leader is this process.
static void session(void) {
    int group, terminal;
    char c[16];
    SHOW(open("/dev/tty", O_RDWR));
    SHOW(ioctl(slave, TIOCSPGRP, &group));
    SHOW(ioctl(slave, TIOCSCTTY, 0));
    SHOW(ioctl(slave, TIOCSCTTY, 0));
    SHOW(tcgetpgrp(slave) == getpgrp());
#ifdef __x86_64__  // qemu-user does not know TIOCGSID
    SHOW(tcgetsid(slave) == getpid());
#endif
    SHOW((terminal = open("/dev/tty", O_RDWR)) >= 0);
    SHOW(write(terminal, "hello\n", 6));
    SHOW(tcsetpgrp(slave, -3));
    SHOW(tcsetpgrp(slave, 999999));
    SHOW(tcsetpgrp(slave, getppid()));
    for (int i = 1; i < 32; i++)
        if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD) signal(i, hear);
    write(master, "\003\034\032", 3);
    settle();
    report("typed signals");
    struct winsize size = {2, 3, 0, 0};
    SHOW(ioctl(slave, TIOCSWINSZ, &size));
    SHOW(ioctl(slave, TIOCSWINSZ, &size));
    report("window");

    fflush(stdout);
    pid_t child = fork();
    if (!child) {  // in the background
        signal(SIGTTIN, SIG_DFL);
        signal(SIGTTOU, SIG_DFL);
        setpgid(0, 0);
        fcntl(terminal, F_SETFL, 0);
        SHOW(write(terminal, "from behind\n", 12));
        SHOW(read(terminal, c, 16));
        tcsetattr(terminal, TCSANOW, &usual);
        SHOW(tcgetpgrp(terminal) == getpgrp());
        signal(SIGTTIN, SIG_IGN);
        tcsetpgrp(terminal, getppid());
        _exit(3);
    }
    int status;
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    settle();
    write(master, "to the foreground\n", 18);
    SHOW(tcsetpgrp(slave, child));
    int continued = kill(child, SIGCONT);  // shown when the child, which runs now, has shown what it does
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(continued);
    SHOW(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    SHOW(tcgetpgrp(slave) == getpgrp());

    signal(SIGTTOU, SIG_IGN);
    child = fork();
    if (!child) pause();
    SHOW(tcsetpgrp(slave, child));  // leads no group
    setpgid(child, child);
    kill(child, SIGKILL);
    SHOW(waitid(P_PID, child, NULL, WEXITED | WNOWAIT));
    SHOW(tcsetpgrp(slave, child));  // has ended
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(tcsetpgrp(slave, child));
    SHOW(tcsetpgrp(slave, getpgrp()));
    signal(SIGTTOU, hear);

    child = fork();
    if (!child) {
        signal(SIGTTIN, SIG_IGN);
        setpgid(0, 0);
        SHOW(read(slave, c, 16));
        struct termios stopping = usual;
        stopping.c_lflag |= TOSTOP;
        signal(SIGTTOU, SIG_IGN);
        SHOW(tcsetattr(slave, TCSANOW, &stopping));
        SHOW(write(slave, "ignored\n", 8));
        signal(SIGTTOU, SIG_DFL);
        SHOW(write(slave, "stopped\n", 8));
        _exit(4);
    }
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    SHOW(WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    SHOW(kill(child, SIGKILL));
    SHOW(waitpid(child, &status, 0) == child);

    report("before hanging up");
    show_seen("seen");
    SHOW(close(master));
    settle();
    report("hung up");
    SHOW(read(slave, c, 16));
    SHOW(write(slave, "x", 1));
    SHOW(tcgetattr(slave, &usual));
    SHOW(tcsetpgrp(slave, getpgrp()));
    struct pollfd wanted = {slave, POLLIN | POLLOUT, 0};
    SHOW(poll(&wanted, 1, 0));
    SHOW(wanted.revents);
    SHOW(open("/dev/tty", O_RDWR));
    SHOW(open(name, O_RDWR));
}

// The leader of a session ends: its group in the foreground hears, and the master reads to the end.
static void leader_ends(void) {
    int ready[2], status;
    pipe(ready);
    fcntl(master, F_SETFL, 0);
    fflush(stdout);
    if (!fork()) {
        close(master);
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        if (!fork()) {
            signal(SIGHUP, hear);
            signal(SIGCONT, hear);
            close(ready[0]);
            write(slave, "working\n", 8);
            write(ready[1], "x", 1);
            for (int i = 0; i < 200 && !heard[SIGHUP]; i++) usleep(10000);
            printf("hup %d\n", heard[SIGHUP]);
            SHOW(write(slave, "late\n", 5));
            _exit(0);
        }
        char c;
        read(ready[0], &c, 1);
        _exit(0);
    }
    close(slave);
    close(ready[1]);
    wait(&status);
    char c;
    SHOW(read(ready[0], &c, 1));
    SHOW(read(ready[0], &c, 1));
    show_seen("seen");
    struct pollfd wanted = {master, POLLIN | POLLOUT, 0};
    SHOW(poll(&wanted, 1, 0));
    SHOW(wanted.revents);
    SHOW((slave = open(name, O_RDWR | O_NOCTTY)) >= 0);
    SHOW(poll(&wanted, 1, 0));
    SHOW(wanted.revents);
    SHOW(write(slave, "again\n", 6));
    fcntl(master, F_SETFL, O_NONBLOCK);
    settle();
    show_seen("seen");
}

static void packets(void) {
    int on = 1;
    settle();
    SHOW(ioctl(master, TIOCPKT, &on));
    written("data\n");
    SHOW(tcflush(slave, TCIFLUSH));
    settle();
    show("packets", master);
    SHOW(tcflow(slave, TCOOFF));
    SHOW(tcflow(slave, TCOON));
    settle();
    show("packets", master);
    write(master, "\023", 1);
    settle();
    show("packets", master);
    write(master, "\021", 1);
    settle();
    show("packets", master);
    with(usual.c_iflag & ~IXON, usual.c_oflag, usual.c_lflag);
    settle();
    show("packets", master);
    on = 0;
    SHOW(ioctl(master, TIOCPKT, &on));
    SHOW(tcsetattr(slave, TCSANOW, &usual));
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    open_pair();
    lines();
    raw();
    window();
    packets();
    close(slave);
    close(master);
    open_pair();
    leader_ends();
    close(slave);
    close(master);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        setsid();
        open_pair();
        session();
        fflush(stdout);
        _exit(0);
    }
    int status;
    SHOW(waitpid(child, &status, 0) == child);
    return 0;
}
