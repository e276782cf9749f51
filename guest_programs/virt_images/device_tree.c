/* The flattened device tree, and what the image needs of it. Devicetree Specification 0.4, chapter 5. */
#include "bare.h"

#define MAGIC 0xd00dfeed
enum { BEGIN_NODE = 1, END_NODE = 2, PROPERTY = 3, NOP = 4, END = 9 };
#define MOST_LEVELS 8

struct board board;

static uint32_t word(const void* from) {
    const uint8_t* bytes = from;
    return (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

static uint64_t cells(const uint8_t* from, unsigned count) {
    uint64_t value = 0;
    for (; count; count--, from += 4) value = value << 32 | word(from);
    return value;
}

static bool equal(const char* one, const char* other) {
    while (*one && *one == *other) one++, other++;
    return *one == *other;
}

/* One of the strings of a list */
static bool lists(const char* list, unsigned size, const char* wanted) {
    for (unsigned at = 0; at < size; at++)
        if ((!at || !list[at - 1]) && equal(list + at, wanted)) return true;
    return false;
}

struct node {
    unsigned address_cells, size_cells; /* of those below */
    const char *compatible, *type, *method;
    const uint8_t *reg, *interrupts;
    unsigned compatible_size;
};

static bool is(const struct node* node, const char* wanted) {
    return node->compatible && lists(node->compatible, node->compatible_size, wanted);
}

static void property(struct node* node, const char* name, const uint8_t* value, unsigned size) {
    if (equal(name, "#address-cells"))
        node->address_cells = word(value);
    else if (equal(name, "#size-cells"))
        node->size_cells = word(value);
    else if (equal(name, "compatible"))
        node->compatible = (const char*)value, node->compatible_size = size;
    else if (equal(name, "device_type"))
        node->type = (const char*)value;
    else if (equal(name, "method"))
        node->method = (const char*)value;
    else if (equal(name, "reg"))
        node->reg = value;
    else if (equal(name, "interrupts"))
        node->interrupts = value;
}

static void has(const struct node* node, const struct node* parent) {
    unsigned cell_count = parent->address_cells;
    if (is(node, "arm,psci-0.2")) board.by_smc = equal(node->method, "smc");
    if (!node->reg) return;
    uint64_t start = cells(node->reg, cell_count);
    const uint8_t* size = node->reg + 4 * cell_count;
    if (node->type && equal(node->type, "memory")) {
        board.memory = start;
        board.memory_bytes = cells(size, parent->size_cells);
    } else if (node->type && equal(node->type, "cpu")) {
        if (board.cpus < MOST_CPUS) board.affinities[board.cpus] = start;
        board.cpus++;
    } else if (is(node, "arm,gic-v3")) {
        board.distributor = start;
        board.redistributors = cells(size + 4 * parent->size_cells, cell_count);
    } else if (is(node, "arm,pl011")) {
        board.uart = start;
        board.uart_spi = 32 + word(node->interrupts + 4);
    } else if (is(node, "arm,pl031")) {
        board.clock = start;
    } else if (is(node, "virtio,mmio") && board.slots < 32) {
        board.slot[board.slots++] = start;
    }
}

bool read_device_tree(const void* tree) {
    const uint8_t* bytes = tree;
    if (!tree || word(tree) != MAGIC) return false;
    const uint8_t* here = bytes + word(bytes + 8);
    const char* names = (const char*)bytes + word(bytes + 12);
    static struct node nodes[MOST_LEVELS];
    unsigned level = 0; /* 1: the root is being read */
    for (;;) {
        uint32_t token = word(here);
        here += 4;
        if (token == BEGIN_NODE) {
            while (*here) here++;
            here += 4 - ((uintptr_t)here & 3);
            if (++level == MOST_LEVELS) return false;
            nodes[level] = (struct node){.address_cells = 2, .size_cells = 1};
        } else if (token == END_NODE) {
            has(&nodes[level], &nodes[level - 1]);
            level--;
        } else if (token == PROPERTY) {
            uint32_t size = word(here);
            property(&nodes[level], names + word(here + 4), here + 8, size);
            here += 8 + ((size + 3) & ~3u);
        } else if (token != NOP) {
            return token == END && !level;
        }
    }
}

void check_device_tree(void) {
    check(board.memory == 0x40000000, "device tree: memory is where it is on virt", board.memory);
    check(board.memory_bytes == 64 << 20, "device tree: there are 64 MiB of it", board.memory_bytes);
    check(board.cpus && board.cpus <= MOST_CPUS, "device tree: CPUs", board.cpus);
    check((READ(mpidr_el1) & 0xffffff) == board.affinities[0], "device tree: the first is this one", READ(mpidr_el1));
    check(board.distributor == 0x08000000, "device tree: GICD", board.distributor);
    check(board.redistributors == 0x080a0000, "device tree: GICR", board.redistributors);
    check(board.uart == 0x09000000 && board.uart_spi == 33, "device tree: PL011", board.uart);
    check(board.clock == 0x09010000, "device tree: PL031", board.clock);
    check(board.slots == 32, "device tree: 32 slots of virtio", board.slots);
    uint64_t sum = 0;
    for (unsigned slot = 0; slot < board.slots; slot++) sum += board.slot[slot] - 0x0a000000;
    check(sum == 0x200 * 31 * 16, "device tree: each has 512 bytes", sum);
}
