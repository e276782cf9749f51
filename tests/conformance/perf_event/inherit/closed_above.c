// When the event that was opened is closed those of children end with it.
#include "../behaviour.h"

BEHAVIOUR(closed_above, NOTHING) {
    Attr attr = DUMMY;
    attr.inherit = 1;
    attr.disabled = 0;
    int event = open_event(attr);
    struct child child = start(NULL);
    close(event);
    finish(child);
}
