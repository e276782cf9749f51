/* The PL011 and the PL031 by their identification and interrupts. */
#include "bare.h"

static uint64_t identification(uint64_t device) {
    uint64_t found = 0;
    for (unsigned offset = 0xfe0; offset < 0x1000; offset += 4) found = found << 8 | (*at(device + offset) & 0xff);
    return found & ~(0xf0ull << 40); /* but for the revision */
}

enum { DR = 0, IMSC = 0x38 / 4, ICR = 0x44 / 4, TX = 1 << 5 };

static void let_fall(void) { at(board.uart)[ICR] = TX; }
static void let_rise(void) { at(board.uart)[DR] = '\n'; } /* something is to be sent */

/* The line of the UART pends from its edge on until it is taken, whatever its level is then. */
static void edges(unsigned interrupt) {
    struct cpu* me = this_cpu();
    let_fall();
    at(board.uart)[IMSC] = TX;
    forget();
    set_edge(interrupt, true);
    let_rise();
    let_fall();
    bool pends = is_pending(interrupt);
    unmask();
    bool comes = takes(1) && me->interrupts[0] == interrupt;
    mask();
    bool has_gone = !is_pending(interrupt);
    let_rise();
    forget();
    unmask();
    bool comes_once = takes(1);
    bool level_is_none = takes_none();
    mask();
    let_rise();
    bool stays_away = !is_pending(interrupt); /* the line is still high */
    let_fall();
    let_rise();
    bool rises_again = is_pending(interrupt);
    set_pending(interrupt, false);
    bool is_cleared = !is_pending(interrupt);
    set_edge(interrupt, false);
    bool by_level = is_pending(interrupt);
    set_pending(interrupt, false);
    bool level_stays = is_pending(interrupt);
    let_fall();
    bool falls = !is_pending(interrupt);
    at(board.uart)[IMSC] = 0;
    check(pends, "GICD_ICFGR: an edge pends when its line has fallen", 0);
    check(comes && has_gone, "GICD_ICFGR: an edge comes, and is gone", comes);
    check(comes_once && level_is_none, "GICD_ICFGR: a line that stays high comes once", me->taken);
    check(stays_away && rises_again, "GICD_ICFGR: the next edge is when it has fallen", stays_away);
    check(is_cleared, "GICD_ICPENDR: an edge pends no more, though its line is high", 0);
    check(by_level && level_stays && falls, "GICD_ICFGR: by level it pends while its line is high", by_level);
}

static void configurations(unsigned interrupt) {
    check(edges_near(0) == 0xaaaaaaaa, "GICR_ICFGR0: what CPUs send are edges", edges_near(0));
    set_edge(0, false);
    check(edges_near(0) == 0xaaaaaaaa, "GICR_ICFGR0: and stay so", edges_near(0));
    uint32_t before = edges_near(interrupt), bit = 2u << interrupt % 16 * 2;
    set_edge(interrupt, true);
    check(edges_near(interrupt) == (before | bit), "GICD_ICFGR: edge", edges_near(interrupt));
    set_edge(interrupt, false);
    check(edges_near(interrupt) == (before & ~bit), "GICD_ICFGR: level", edges_near(interrupt));
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
    configurations(board.uart_spi);
    edges(board.uart_spi);
    enable(board.uart_spi, false);
}
