// A task may open an event of itself.
#include "../behaviour.h"

BEHAVIOUR(opens, NOTHING) { EQUAL(open_error(DUMMY), 0); }
