/* A test image for PCs, by Multiboot: COM1, fw_cfg, the exit device at 0xf4. */
#include "bare.h"

enum { LOADED_BY_MULTIBOOT = 0x2badb002, FW_CFG = 0x510, SIGNATURE = 0, CPUS = 5 };

extern uint32_t boot_magic, boot_information;
unsigned cpus;
bool with_reserved;

static bool ends_with(const char* text, const char* end) {
    const char *at = text, *its = end;
    while (*at) at++;
    while (*its) its++;
    while (its > end && at > text && at[-1] == its[-1]) at--, its--;
    return its == end;
}

static uint32_t firmware(uint16_t item, unsigned size) {
    uint32_t value = 0;
    out16(FW_CFG, item);
    for (unsigned byte = 0; byte < size; byte++) value |= (uint32_t)in8(FW_CFG + 1) << 8 * byte;
    return value;
}

int main(void) {
    set_gates();
    out8(0x21, 0xff); /* the 8259s are masked */
    out8(0xa1, 0xff);
    expect(boot_magic, LOADED_BY_MULTIBOOT, "Multiboot: its magic number");
    const uint32_t* information = (const uint32_t*)(word)boot_information;
    check(information[0] & 4, "Multiboot: there is a command line", information[0]);
    with_reserved = ends_with((const char*)(word)information[4], "reserved");
    check(information[0] & 1, "Multiboot: memory is told", information[0]);
    check(information[1] >= 600 && information[1] <= 640, "Multiboot: KiB below 640", information[1]);
    expect(firmware(SIGNATURE, 4), 0x554d4551, "fw_cfg: QEMU");
    cpus = firmware(CPUS, 2);
    check(cpus && cpus <= MOST_CPUS, "fw_cfg: how many CPUs there are", cpus);
    check_exceptions();
    check_features();
    start_apic();
    check_apic();
    if (ends_with((const char*)(word)information[4], "perfmon")) check_perfmon();
    check_cpus();
    end();
    return 0;
}
