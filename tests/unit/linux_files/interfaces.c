// Lists the loopback interface and its addresses, as getifaddrs(3) finds them.
#include <ifaddrs.h>
#include <stdio.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <netpacket/packet.h>
#include <string.h>
int main(void) {
    struct ifaddrs *all;
    if (getifaddrs(&all)) { perror("getifaddrs"); return 1; }
    // all there are
    for (struct ifaddrs *a = all; a; a = a->ifa_next) {
        char text[100] = "", mask[100] = "";
        int family = a->ifa_addr ? a->ifa_addr->sa_family : -1;
        if (family == AF_INET) {
            inet_ntop(family, &((struct sockaddr_in *)a->ifa_addr)->sin_addr, text, 100);
            inet_ntop(family, &((struct sockaddr_in *)a->ifa_netmask)->sin_addr, mask, 100);
        } else if (family == AF_INET6) {
            inet_ntop(family, &((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, text, 100);
            inet_ntop(family, &((struct sockaddr_in6 *)a->ifa_netmask)->sin6_addr, mask, 100);
        } else if (family == AF_PACKET) {
            struct sockaddr_ll *link = (struct sockaddr_ll *)a->ifa_addr;
            sprintf(text, "index %d hardware %d length %d", link->sll_ifindex, link->sll_hatype, link->sll_halen);
        }
        printf("%s %d %s %s %s\n", a->ifa_name, family, text, mask, a->ifa_flags & IFF_LOOPBACK && a->ifa_flags & IFF_UP && a->ifa_flags & IFF_RUNNING ? "up, loopback" : "?");
    }
    freeifaddrs(all);
    return 0;
}
