/* A test image to the conventions of QEMU's virt: what is where is in the device tree. */
#include "bare.h"

#define RAM 0x40000000
enum { PAGE = 4096, QUEUE_SIZE = 8 };

int main(const void* tree) {
    if (!read_device_tree(tree) && !read_device_tree((const void*)RAM)) /* where QEMU has it for ELF files */
        for (;;) {
        }
    check_device_tree();
    start_distributor();
    start_interface();
    check_exceptions();
    check_interrupts();
    check_timers();
    check_firmware();
    check_other_cpus();
    check_spinning();
    check_devices();
    check_pmu();
    end();
    return 0;
}

struct descriptor {
    uint64_t address;
    uint32_t size;
    uint16_t flags, next;
};

static struct {
    struct descriptor descriptors[QUEUE_SIZE];
    uint16_t flags, index, ring[QUEUE_SIZE];
    uint8_t used[PAGE];
} __attribute__((aligned(PAGE))) queue;

/* "<n>q" to a legacy console by virtio: the status is (n << 1) | 1. */
static void send_verdict(uint64_t slot, const char* text, unsigned size) {
    *at(slot + 0x70) = 3; /* Status: acknowledged, a driver */
    *at(slot + 0x24) = 0;
    *at(slot + 0x20) = 0;    /* no features */
    *at(slot + 0x28) = PAGE; /* GuestPageSize */
    *at(slot + 0x30) = 1;    /* QueueSel: transmit */
    *at(slot + 0x38) = QUEUE_SIZE;
    *at(slot + 0x3c) = PAGE; /* QueueAlign */
    *at(slot + 0x40) = (uint32_t)((uint64_t)&queue / PAGE);
    *at(slot + 0x70) = 7; /* and ready */
    queue.descriptors[0] = (struct descriptor){.address = (uint64_t)text, .size = size};
    queue.ring[0] = 0;
    BARRIER();
    queue.index = 1;
    BARRIER();
    *at(slot + 0x50) = 1; /* QueueNotify */
}

void end(void) {
    static char verdict[] = "0q";
    verdict[0] += failed < 9 ? failed : 9;
    say(failed ? "failed\n" : "all passed\n");
    for (unsigned slot = 0; slot < board.slots; slot++)
        if (*at(board.slot[slot] + 4) == 1 && *at(board.slot[slot] + 8) == 3)
            send_verdict(board.slot[slot], verdict, 2);
    for (uint64_t until = ticks() + READ(cntfrq_el0) / 10; ticks() < until;) {
    }
    firmware(SYSTEM_OFF, 0, 0, 0);
    for (;;) {
    }
}
