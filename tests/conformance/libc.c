/* What a C library gives a program: arguments, environment, thread-local storage, constructors, heap, stdio, files,
 * sorting, formatting, non-local jumps, signals to itself, exit handlers. Output and status are compared with
 * qemu-user's. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static __thread int per_thread = 42;
static int constructed;
static volatile sig_atomic_t signals;
static jmp_buf place;

__attribute__((constructor)) static void construct(void) { constructed = 7; }

static void at_exit(void) { puts("exit handler"); }

static void handle(int number) { signals += number; }

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(int argc, char** argv) {
    atexit(at_exit);
    printf("%d arguments, last %s, constructed %d, thread-local %d\n", argc, argv[argc - 1], constructed, per_thread++);
    printf("%s %s\n", getenv("LC_ALL"), getenv("NOT_THERE") ? "there" : "not there");

    int* numbers = malloc(1000 * sizeof *numbers);
    for (int i = 0; i < 1000; i++) numbers[i] = i * 7919 % 1009;
    qsort(numbers, 1000, sizeof *numbers, by_value);
    numbers = realloc(numbers, 500000 * sizeof *numbers);
    printf("%d %d %d\n", numbers[0], numbers[500], numbers[999]);
    free(numbers);

    printf("%.10f %g %e %a\n", sqrt(2.0), 1e100 / 3, strtod("6.02214076e23", NULL), 0.1);
    struct tm* date = gmtime(&(time_t){1000000000});
    char text[64];
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", date);
    puts(text);

    FILE* file = fopen("libc-made.txt", "w+");
    if (!file) return 1;
    for (int i = 0; i < 100; i++) fprintf(file, "line %d\n", i);
    rewind(file);
    int lines = 0;
    while (fgets(text, sizeof text, file)) lines++;
    fclose(file);
    printf("%d lines, unlink %d, again %d %s\n", lines, unlink("libc-made.txt"), unlink("libc-made.txt"),
           strerror(errno));

    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    printf("signals %d\n", (int)signals);
    int jumped = setjmp(place);
    if (jumped < 3) longjmp(place, jumped + 1);
    printf("jumped %d\n", jumped);
    fflush(stdout);
    return argc + 20;
}
