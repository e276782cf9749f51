// Each sleep is a switch; they are the kernel's, so exclude_kernel leaves none.
#include "../behaviour.h"

BEHAVIOUR(context_switches, ROOT) {
    Attr attr = SOFTWARE(CONTEXT_SWITCHES);
    int user = open_event(attr);
    attr.exclude_kernel = 0;
    int event = open_event(attr);
    enable(event), enable(user);
    for (int i = 0; i < 10; i++) sleep_ms(1);
    disable(event), disable(user);
    COMPARE(count_of(event), >=, 10);
    COMPARE(count_of(event), <, 100);
    EQUAL(count_of(user), 0);
}
