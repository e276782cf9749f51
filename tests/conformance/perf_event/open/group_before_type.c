// The group's descriptor is looked at before anybody is asked for the event.
#include "../behaviour.h"

BEHAVIOUR(group_before_type, NOTHING) { FAILS(try_open(attr_of(77777, 0), 0, -1, 9999, 0), EBADF); }
