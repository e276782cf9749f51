// The first task is root's: another user may not watch it, and root may.
#include "../behaviour.h"

static void watch_init(void) {
    become_nobody();
    FAILS(try_open(DUMMY, 1, -1, -1, 0), EACCES);
    FAILS(kill(1, 0), EPERM);
}

BEHAVIOUR(init_of_a_user, ROOT) {
    SUCCEEDS(try_open(DUMMY, 1, -1, -1, 0));
    apart(watch_init);
}
