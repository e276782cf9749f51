/* Message queues of POSIX: by name, with priorities, timeouts, notification and poll. */
#include "show.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static volatile int notified, value;
static void on_signal(int signal, siginfo_t *info, void *context) { notified = info->si_code, value = info->si_value.sival_int; }

static void attributes(mqd_t queue) {
    struct mq_attr of;
    SHOW(mq_getattr(queue, &of));
    printf("%ld %ld %ld %ld\n", of.mq_flags, of.mq_maxmsg, of.mq_msgsize, of.mq_curmsgs);
}

static int ready(mqd_t queue) {
    struct pollfd one = {queue, POLLIN | POLLOUT};
    poll(&one, 1, 0);
    return one.revents;
}

int main(void) {
    char name[64], text[100];
    unsigned priority;
    sprintf(name, "/perfemu-%d", getpid());
    struct mq_attr three = {.mq_maxmsg = 3, .mq_msgsize = 20}, bad = {.mq_maxmsg = 0, .mq_msgsize = 20};
    SHOW(mq_open(name, O_RDWR));
    SHOW(mq_open("no-slash", O_RDWR | O_CREAT, 0600, NULL));
    SHOW(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL));
    SHOW(mq_open(name, O_RDWR | O_CREAT, 0600, &bad));
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0640, &three);
    SHOW(queue >= 0);
    SHOW(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &three));
    SHOW(fcntl(queue, F_GETFD));
    struct stat of;
    SHOW(fstat(queue, &of));
    printf("%o %ld\n", of.st_mode, of.st_size);
    attributes(queue);
    SHOW(ready(queue));
    SHOW(mq_send(queue, "low", 4, 1));
    SHOW(mq_send(queue, "high", 5, 9));
    SHOW(mq_send(queue, "low too", 8, 1));
    SHOW(mq_send(queue, "x", 1, 40000));
    SHOW(mq_send(queue, text, 21, 0));
    SHOW(ready(queue));
    struct timespec past = {1, 0}, invalid = {1, -1};
    SHOW(mq_timedsend(queue, "x", 1, 0, &past));
    SHOW(mq_timedsend(queue, "x", 1, 0, &invalid));
    attributes(queue);
    SHOW(mq_receive(queue, text, 19, &priority));
    for (int i = 0; i < 3; i++) {
        SHOW(mq_receive(queue, text, 20, &priority));
        printf("%s %u\n", text, priority);
    }
    SHOW(mq_timedreceive(queue, text, 20, &priority, &past));
    struct mq_attr nonblocking = {.mq_flags = O_NONBLOCK}, before;
    SHOW(mq_setattr(queue, &nonblocking, &before));
    SHOW(before.mq_flags);
    SHOW(mq_receive(queue, text, 20, &priority));
    attributes(queue);
    SHOW(mq_setattr(queue, &before, NULL));

    pid_t child = fork();
    if (!child) {
        struct timespec soon = {0, 20000000};
        nanosleep(&soon, NULL);
        mq_send(queue, "of the child", 13, 5);
        _exit(0);
    }
    SHOW(mq_receive(queue, text, 20, &priority));
    puts(text);
    waitpid(child, NULL, 0);

    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42};
    SHOW(mq_notify(queue, &event));
    SHOW(mq_notify(queue, &event));
    SHOW(mq_send(queue, "tells", 6, 0));
    printf("%d %d\n", notified == SI_MESGQ, value);
    notified = 0;
    SHOW(mq_send(queue, "not again", 10, 0));
    SHOW(notified);
    SHOW(mq_notify(queue, &event));
    SHOW(mq_notify(queue, NULL));

    mqd_t reading = mq_open(name, O_RDONLY | O_NONBLOCK);
    SHOW(reading >= 0);
    SHOW(mq_send(reading, "x", 1, 0));
    SHOW(mq_receive(reading, text, 20, NULL));
    memset(text, 0, sizeof text);
    SHOW(read(reading, text, 99));
    puts(text);
    SHOW(mq_receive(0, text, 20, NULL));
    SHOW(mq_unlink(name));
    SHOW(mq_unlink(name));
    SHOW(mq_receive(reading, text, 20, NULL));
    SHOW(mq_receive(reading, text, 20, NULL));
    SHOW(mq_close(queue));
    SHOW(mq_close(queue));
    return 0;
}
