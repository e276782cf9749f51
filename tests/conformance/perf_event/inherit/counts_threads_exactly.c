// Eight threads and this one: their instructions, together.
#include "../behaviour.h"

static void* ten_million(void* unused) {
    for (int i = 0; i < 10; i++) million();
    return unused;
}

BEHAVIOUR(counts_threads_exactly, PMU) {
    Attr attr = INSTRUCTIONS;
    int alone = open_event(attr);
    attr.inherit = 1;
    int event = open_event(attr);
    enable(alone);
    enable(event);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, ten_million, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    disable(event);
    COMPARE(count_of(event), >=, 80000000);
    COMPARE(count_of(event), <, 81000000);
    COMPARE(count_of(alone), <, 1000000);
}
