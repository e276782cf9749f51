// It is open for reading and writing, and blocks.
#include "../behaviour.h"

BEHAVIOUR(flags, NOTHING) { EQUAL(fcntl(open_event(DUMMY), F_GETFL) & ~0100000, O_RDWR); }
