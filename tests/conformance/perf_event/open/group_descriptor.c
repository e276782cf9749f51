// group_fd below -1, one that is not open, and one that is no event: EBADF.
#include "../behaviour.h"

BEHAVIOUR(group_descriptor, NOTHING) {
    FAILS(try_open(DUMMY, 0, -1, -2, 0), EBADF);
    FAILS(try_open(DUMMY, 0, -1, 9999, 0), EBADF);
    FAILS(try_open(DUMMY, 0, -1, open("/dev/null", O_RDONLY), 0), EBADF);
}
