// SCM_RIGHTS: the receiver reads the sender's event.
#include <sys/socket.h>

#include "../behaviour.h"

static int sockets[2];

static void receive_and_read(void) {
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    EQUAL(recvmsg(sockets[1], &message, 0), 1);
    int event;
    memcpy(&event, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof event);
    COMPARE(count_of(event), >=, 10);
}

BEHAVIOUR(sent_through_a_socket, NOTHING) {
    SUCCEEDS(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    struct child child = start(receive_and_read);
    int event = open_event(SOFTWARE(PAGE_FAULTS_MIN));
    enable(event);
    fault(10);
    char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof event), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &event, sizeof event);
    EQUAL(sendmsg(sockets[0], &message, 0), 1);
    close(event);
    finish(child);
}
