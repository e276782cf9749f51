// The event that programs write to counts nothing without one.
#include "../behaviour.h"

BEHAVIOUR(bpf_output, NOTHING) {
    int event = open_event(SOFTWARE(BPF_OUTPUT));
    enable(event);
    fault(5);
    disable(event);
    EQUAL(count_of(event), 0);
}
