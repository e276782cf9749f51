// An event without a buffer: POLLHUP.
#include "../behaviour.h"

BEHAVIOUR(poll_without_one, NOTHING) { EQUAL(ready(open_event(DUMMY)), POLLHUP); }
