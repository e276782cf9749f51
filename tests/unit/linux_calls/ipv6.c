/* Sockets of IPv6 on the loopback device, and those that hear IPv4, too. Ports are the system's choice and not shown. */
#include "show.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

static const char *text(const struct sockaddr_storage *of) {
    static char shown[100];
    char host[64];
    if (of->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)of;
        sprintf(shown, "[%s]%s", inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host), six->sin6_port ? ":port" : "");
    } else if (of->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const void *)of;
        sprintf(shown, "%s%s", inet_ntop(AF_INET, &four->sin_addr, host, sizeof host), four->sin_port ? ":port" : "");
    } else {
        sprintf(shown, "family %d", of->ss_family);
    }
    return shown;
}

static void names(const char *what, int fd) {
    struct sockaddr_storage of = {0};
    socklen_t size = sizeof of;
    getsockname(fd, (void *)&of, &size);
    printf("%s: %d %s", what, size, text(&of));
    size = sizeof of;
    int result = getpeername(fd, (void *)&of, &size);
    if (result) printf(", %s\n", strerror(errno));
    else printf(" to %d %s\n", size, text(&of));
}

static int is_six(const char *host) { return strchr(host, ':') != NULL; }

static int new_socket(int type, const char *host) { return socket(is_six(host) ? AF_INET6 : AF_INET, type, 0); }

/* What bind or connect makes of the socket, which is closed if that fails. */
static int attached(int fd, int call(int, const struct sockaddr *, socklen_t), const char *host, int port) {
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int six = is_six(host);
    inet_pton(six ? AF_INET6 : AF_INET, host, six ? (void *)&to6.sin6_addr : (void *)&to4.sin_addr);
    int result = six ? call(fd, (void *)&to6, sizeof to6) : call(fd, (void *)&to4, sizeof to4);
    if (result == 0) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

static int bound(int type, const char *host, int port, int only6) {
    int fd = new_socket(type, host);
    if (is_six(host) && only6 >= 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only6, sizeof only6);
    return attached(fd, bind, host, port);
}

static int connected(int type, const char *host, int port) { return attached(new_socket(type, host), connect, host, port); }

static int port_of(int fd) {
    struct sockaddr_in6 of;
    socklen_t size = sizeof of;
    getsockname(fd, (void *)&of, &size);
    return ntohs(of.sin6_port);
}

static void exchange(const char *name, int listener, const char *host, int port) {
    printf("-- %s\n", name);
    int client = connected(SOCK_STREAM, host, port);
    SHOW(client >= 0);
    if (client < 0) return;
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int server = accept(listener, (void *)&from, &size);
    printf("from %d %s\n", size, text(&from));
    names("client", client);
    names("server", server);
    char data[10];
    SHOW(write(client, "hello", 5));
    SHOW(read(server, data, 10));
    SHOW(shutdown(client, SHUT_WR));
    SHOW(read(server, data, 10));
    SHOW(write(server, "bye", 3));
    SHOW(read(client, data, 10));
    close(client), close(server);
}

static void streams(void) {
    int both = bound(SOCK_STREAM, "::", 0, -1), port = port_of(both);
    SHOW(both >= 0);
    names("unbound listener", both);
    SHOW(listen(both, 5));
    exchange("IPv6", both, "::1", port);
    exchange("IPv4", both, "127.0.0.1", port);
    exchange("mapped", both, "::ffff:127.0.0.1", port);
    exchange("any of IPv6", both, "::", port);
    SHOW(bound(SOCK_STREAM, "0.0.0.0", port, 0));
    SHOW(bound(SOCK_STREAM, "127.0.0.1", port, 0));
    SHOW(bound(SOCK_STREAM, "::1", port, 0));
    int only = 1, length = sizeof only;
    SHOW(setsockopt(both, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only));
    SHOW(getsockopt(both, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length));
    SHOW(only);
    close(both);

    int six = bound(SOCK_STREAM, "::", 0, 1);
    port = port_of(six);
    int four = bound(SOCK_STREAM, "0.0.0.0", port, 0);
    SHOW(four >= 0);
    listen(six, 5), listen(four, 5);
    exchange("IPv6 only", six, "::1", port);
    exchange("IPv4 beside it", four, "127.0.0.1", port);
    close(four);
    SHOW(connected(SOCK_STREAM, "127.0.0.1", port));
    SHOW(connected(SOCK_STREAM, "::ffff:127.0.0.1", port));
    close(six);
    SHOW(connected(SOCK_STREAM, "::1", port));
    int one = bound(SOCK_STREAM, "::1", 0, -1);
    port = port_of(one);
    listen(one, 5);
    exchange("the loopback address", one, "::1", port);
    SHOW(connected(SOCK_STREAM, "127.0.0.1", port));
    four = bound(SOCK_STREAM, "127.0.0.1", port, 0);
    SHOW(four >= 0);
    SHOW(bound(SOCK_STREAM, "::", port, 0));
    SHOW(bound(SOCK_STREAM, "2001:db8::5", 0, -1));
    int fresh = socket(AF_INET6, SOCK_STREAM, 0);
    names("fresh", fresh);
    SHOW(listen(fresh, 1));
    names("listening", fresh);
    struct sockaddr_in4 { short family, port; unsigned host; char zero[8]; } short_one = {AF_INET};
    SHOW(bind(fresh, (void *)&short_one, 16));
    int domain;
    SHOW(getsockopt(fresh, SOL_SOCKET, SO_DOMAIN, &domain, &length));
    SHOW(domain == AF_INET6);
    SHOW(getsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &domain, &length));
    SHOW(getsockopt(four, IPPROTO_IPV6, IPV6_V6ONLY, &domain, &length));
    int value = 1;
    SHOW(setsockopt(fresh, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, sizeof value));
}

static void datagrams(void) {
    int both = bound(SOCK_DGRAM, "::", 0, 0), port = port_of(both);
    const char *hosts[] = {"::1", "127.0.0.1", "::ffff:127.0.0.1"};
    for (int i = 0; i < 3; i++) {
        int client = connected(SOCK_DGRAM, hosts[i], port);
        names(hosts[i], client);
        SHOW(send(client, "ping", 4, 0));
        char data[10];
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        SHOW(recvfrom(both, data, 10, 0, (void *)&from, &size));
        printf("from %d %s\n", size, text(&from));
        SHOW(sendto(both, "pong", 4, 0, (void *)&from, size));
        SHOW(recv(client, data, 10, 0));
        close(client);
    }
    int fresh = socket(AF_INET6, SOCK_DGRAM, 0);
    names("fresh", fresh);
    SHOW(send(fresh, "x", 1, 0));
}

int main(void) {
    streams();
    datagrams();
    return 0;
}
