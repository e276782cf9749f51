// CAP_PERFMON is enough.
#include <linux/capability.h>

#include "../behaviour.h"

static void watch_with_perfmon(void) {
    SUCCEEDS(prctl(PR_SET_KEEPCAPS, 1));
    become_nobody();
    Attr attr = DUMMY;
    attr.exclude_kernel = 0;
    EQUAL(open_error(attr), EACCES);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {1 << (38 - 32), 1 << (38 - 32), 0}};  // CAP_PERFMON
    SUCCEEDS(syscall(SYS_capset, &header, data));
    EQUAL(open_error(attr), 0);
    SUCCEEDS(try_open(attr, -1, 0, -1, 0));
    attr.namespaces = 1;
    EQUAL(open_error(attr), 0);
}

BEHAVIOUR(cap_perfmon, A_MACHINE) {
    set_sysctl("perf_event_paranoid", 2);
    apart(watch_with_perfmon);
}
