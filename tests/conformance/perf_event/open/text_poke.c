// attr.text_poke and attr.ksymbol tell of the kernel's code: where that stays as it is, nothing.
#include "../behaviour.h"

BEHAVIOUR(text_poke, NOTHING) {
    Attr attr = DUMMY;
    attr.text_poke = attr.ksymbol = 1;
    int event = open_event(attr);
    struct ring* ring = ring_of(event, 1);
    enable(event);
    for (int i = 0; i < 100; i++) getppid();
    disable(event);
    CHECK(!next_record(ring));
}
