/* SHOW prints a call and what it answers, so that two kernels can be compared. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOW(expression)                                                                 \
    do {                                                                                 \
        errno = 0;                                                                       \
        long result = (long)(expression);                                                \
        printf("%s = %ld %s\n", #expression, result, result < 0 ? strerror(errno) : ""); \
        fflush(stdout);                                                                  \
    } while (0)
