// tracefs's error_log: what definitions of probes and filters are refused for, and where in the line. Without times.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static char text[1 << 16];

static const char* content(const char* name) {
    char path[200];
    snprintf(path, sizeof path, TRACING "%s", name);
    int file = open(path, O_RDONLY), length = 0, got;
    while (file >= 0 && (got = read(file, text + length, sizeof text - 1 - length)) > 0) length += got;
    text[length] = 0;
    close(file);
    return text;
}

static void put(const char* name, const char* line, int flags) {
    char path[200];
    snprintf(path, sizeof path, TRACING "%s", name);
    int file = open(path, O_WRONLY | flags);
    int error = file < 0 ? errno : write(file, line, strlen(line)) < 0 ? errno : 0;
    if (strcmp(name, "error_log")) printf("%s <- %s: %d\n", name, line, error);
    close(file);
}

// A time stands in brackets.
static void show_log(void) {
    for (char* line = strtok((char*)content("error_log"), "\n"); line; line = strtok(NULL, "\n"))
        puts(*line == '[' && strchr(line, ']') ? strchr(line, ']') + 2 : line);
}

static void try(const char* name, const char* line, int flags) {
    put("error_log", "", O_TRUNC);
    put(name, line, flags);
    show_log();
}

static const char* const UPROBES[] = {
    "p:u/a /nofile:0x100",
    "p:u/a /proc:0x100",
    "p:u/a FILE:zz",
    "p:u/a FILE:0xzz",
    "p:u/a FILE:0x1000%retur",
    "p:u/a FILE:0x1000(0x10",
    "p:u/a FILE:0x1000(zz)",
    "p:u/a FILE:0x1000(0x10)z",
    "p:u/ FILE:0x1000 %foo",
    "p:/a FILE:0x1000",
    "p: FILE:0x1000",
    "p:u/a-b FILE:0x1000",
    "p:9u/a FILE:0x1000",
    "p:u/a FILE:0x1000 x=%foo",
    "p:u/a   FILE:0x1000    %foo",
    "p:u/a FILE:0x1000 x=",
    "p:u/a FILE:0x1000 =$stack",
    "p:u/a FILE:0x1000 9=$stack",
    "p:u/a FILE:0x1000 x=$stack x=$stack",
    "p:u/a FILE:0x1000 x=$retval",
    "p:u/a FILE:0x1000 x=$foo",
    "p:u/a FILE:0x1000 x=$stackz",
    "p:u/a FILE:0x1000 x=$arg1",
    "p:u/a FILE:0x1000 x=@zz",
    "p:u/a FILE:0x1000 x=@0z",
    "p:u/a FILE:0x1000 x=@+zz",
    "p:u/a FILE:0x1000 x=\\z",
    "p:u/a FILE:0x1000 x=\\\"abc",
    "p:u/a FILE:0x1000 x=+8$stack",
    "p:u/a FILE:0x1000 x=+zz($stack)",
    "p:u/a FILE:0x1000 x=+8($stack",
    "p:u/a FILE:0x1000 x=+8($comm)",
    "p:u/a FILE:0x1000 x=-8(+16(%foo))",
    "p:u/a FILE:0x1000 x=+u8(+16(%foo)):u8",
    "p:u/a FILE:0x1000 x=zz",
    "p:u/a FILE:0x1000 x=!",
    "p:u/a FILE:0x1000 x=$stack:foo",
    "p:u/a FILE:0x1000 x=$stack:string",
    "p:u/a FILE:0x1000 x=+0($stack):u8[",
    "p:u/a FILE:0x1000 x=+0($stack):u8[2",
    "p:u/a FILE:0x1000 x=+0($stack):u8[2]z",
    "p:u/a FILE:0x1000 x=+0($stack):u8[zz]",
    "p:u/a FILE:0x1000 x=+0($stack):u8[0]",
    "p:u/a FILE:0x1000 x=+0($stack):u8[65]",
    "p:u/a FILE:0x1000 x=$stack:u8[2]",
    "p:u/a FILE:0x1000 x=$comm:u8",
    "p:u/a FILE:0x1000 x=+0($stack):b40@0/32",
    "p:u/a FILE:0x1000 x=+0($stack):b4@0",
    "p:u/a FILE:0x1000 x=+16(+0($stack)):b40@0/32",
    "p:u/a FILE:0x1000 abcdefghijklmnopqrstuvwxyzabcdefghijk=$stack",
    "p:u/a FILE:0x1000 x=+0($stack00000000000000000000000000000000000000000000000000000000000000000001)",
    "p:u/a",
    "q:u/a FILE:0x1000",
    "-:u/zz",
    "p:sched/sched_switch FILE:0x1000",
    "p:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/a FILE:0x1000",
    "p:u/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa FILE:0x1000",
    "p:u/ok FILE:0x1000 x=$stack",
    "p:u/ok FILE:0x1000 x=$stack",
    "p:u/ok FILE:0x2000 y=$stack",
    "p:u/ok FILE:0x2000",
    "p:u/ok FILE:0x2000 x=$stack y=$stack",
    "r:u/ok FILE:0x2000 x=$stack",
    "-:u/ok",
};
static const char* const KPROBES[] = {
    "p:k/a nosuch",
    "p:k/a do_exit+zz",
    "p:k/a do_exit%retur",
    "p5:k/a do_exit",
    "r0:k/a do_sys_openat2",
    "r5000:k/a do_sys_openat2",
    "r:k/a do_sys_openat2+8",
    "p:k/a do_exit x=%foo",
    "p:k/a do_exit x=@+4",
    "p:k/a",
    "p:k/a-b do_exit",
    "q:k/a do_exit",
    "-:k/zz",
    "p:/a do_exit",
    "p:k/a do_exit x=$foo",
    "p:k/a do_exit x=$retval",
};
static const char* const FILTERS[] = {
    "next_pid == 1",
    "foo == 1",
    "next_pid = 1",
    "next_pid == zz",
    "next_pid ~ \"a\"",
    "next_comm == 1",
    "next_comm == \"a",
    "next_comm > \"a\"",
    "(next_pid == 1",
    "next_pid == 1)",
    "next_pid == 1 &&",
    "next_pid == 1 && &",
    "next_pid == 1 next_pid == 2",
    "next_pid",
    "next_pid ==",
    "! next_pid == 1",
    "next_pid == 1 || foo > 3",
    "next_pid == 99999999999999999999999",
    "next_pid == 1 && next_comm == 12345",
    "prev_state & 3",
    "comm == \"x\"",
    "0",
};

static void try_uprobe(const char* name, const char* line) {
    char whole[300];
    const char* file = strstr(line, "FILE");
    if (file)
        snprintf(whole, sizeof whole, "%.*s%s%s", (int)(file - line), line, "/tmp/uprobed", file + 4);
    else
        strcpy(whole, line);
    try(name, whole, O_APPEND);
}

int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, 0);
    mkdir("/tmp", 0777);
    int file = open("/tmp/uprobed", O_CREAT | O_WRONLY, 0600);
    ftruncate(file, 0x4000);
    close(file);
    for (unsigned i = 0; i < LENGTH(UPROBES); i++) try_uprobe("uprobe_events", UPROBES[i]);
    try_uprobe("dynamic_events", "p:u/z FILE:0x1000 x=%foo");
    try_uprobe("dynamic_events", "p:u/z nosuch");
    for (unsigned i = 0; i < LENGTH(KPROBES); i++) try("kprobe_events", KPROBES[i], O_APPEND);
    for (unsigned i = 0; i < LENGTH(FILTERS); i++) {
        try("events/sched/sched_switch/filter", FILTERS[i], 0);
        printf("%s", content("events/sched/sched_switch/filter"));
    }
    put("error_log", "", O_TRUNC);
    printf("empty: %s.\n", content("error_log"));
    for (int i = 0; i < 10; i++) {
        char line[40];
        snprintf(line, sizeof line, "p:k/a%d nosuch", i);
        put("kprobe_events", line, O_APPEND);
    }
    put("kprobe_events", "p:k/first nosuch\np:k/second nosuch\n", O_APPEND);
    put("error_log", "anything", O_APPEND);
    show_log();
}
