/* The PL011 and the PL031 by their identification and interrupts. */
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
