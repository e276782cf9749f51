/* The PL011 and the PL031 by their identification and interrupts; the PMU. */
#include "bare.h"

static uint64_t identification(uint64_t device) {
    uint64_t found = 0;
    for (unsigned offset = 0xfe0; offset < 0x1000; offset += 4) found = found << 8 | (*at(device + offset) & 0xff);
    return found & ~(0xf0ull << 40); /* but for the revision */
}

void check_devices(void) {
    struct cpu* me = this_cpu();
    uint64_t found = identification(board.uart);
    check(found == 0x111004000df005b1, "PL011: PeriphID and PCellID", found);
    found = identification(board.clock);
    check(found == 0x311004000df005b1, "PL031: PeriphID and PCellID", found);
    uint32_t seconds = at(board.clock)[0];
    at(board.clock)[2] = seconds + 1000; /* LR */
    check(at(board.clock)[0] - seconds - 1000 < 2, "PL031: can be set", at(board.clock)[0]);
    at(board.clock)[2] = seconds;
    for (unsigned slot = 0; slot < board.slots; slot++)
        if (*at(board.slot[slot]) != 0x74726976) check(false, "virtio: magic value of slot", slot);

    forget();
    route(board.uart_spi, board.affinities[0]);
    set_priority(board.uart_spi, 0x60);
    enable(board.uart_spi, true);
    at(board.uart)[0x44 / 4] = 0x7ff;  /* ICR */
    at(board.uart)[0] = '\n';          /* so that there is something to be sent */
    at(board.uart)[0x38 / 4] = 1 << 5; /* IMSC: TX */
    check(is_pending(board.uart_spi), "PL011: its line is raised", at(board.uart)[0x40 / 4]);
    at(board.uart)[0x38 / 4] = 0;
    check(!is_pending(board.uart_spi), "PL011: its line is lowered", at(board.uart)[0x40 / 4]);
    unmask();
    check(takes_none(), "PL011: so that nothing comes", me->taken);
    mask();
    enable(board.uart_spi, false);
}

uint64_t retired(uint64_t rounds);

void check_pmu(void) {
    WRITE(pmcr_el0, 6); /* all counters are zero */
    WRITE(pmccfiltr_el0, 0);
    WRITE(pmcntenset_el0, 1u << 31 | 1);
    WRITE(pmevtyper0_el0, 8); /* INST_RETIRED */
    WRITE(pmcr_el0, 1);
    uint64_t before = READ(pmccntr_el0);
    takes_none();
    check(READ(pmccntr_el0) > before, "PMU: cycles are counted", before);
    WRITE(pmcr_el0, 2);
    bool counts = READ(pmceid0_el0) >> 8 & 1;
    uint64_t found = counts ? retired(1000) : 3003;
    check(found == 3003, "PMU: INST_RETIRED, where it is there, counts a loop", found);
}
