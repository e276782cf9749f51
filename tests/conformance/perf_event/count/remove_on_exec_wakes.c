// remove_on_exec ends the event as its task's end does: who polls it hears POLLHUP.
#include "../behaviour.h"

BEHAVIOUR(remove_on_exec_wakes, NOTHING) {
    if (behaviour_again) {
        EQUAL(wait_for(atoi(behaviour_again)), 0);
        return;
    }
    Attr attr = SOFTWARE(PAGE_FAULTS);
    attr.remove_on_exec = 1;
    int event = open_event(attr);
    CHECK(map(event, 1) != MAP_FAILED);
    int poller = fork();
    if (poller == 0) {
        struct pollfd polled = {event, POLLIN, 0};
        EQUAL(poll(&polled, 1, 20000), 1);
        EQUAL(polled.revents & POLLHUP, POLLHUP);
        _exit(0);
    }
    sleep_ms(50);
    char text[20];
    snprintf(text, sizeof text, "%d", poller);
    exec_again(text);
}
