/* What CPUID offers works, and what it does not is not there: its instruction is #UD, its bit of CR4 #GP. What control
   registers forbid. Intel SDM volumes 2 and 3; where a processor may have a thing or not, both say the same line.
   With "reserved" on the command line also what QEMU 7.2 has otherwise: it executes RDSEED where it has RDRAND alone,
   and knows few reserved bits of control registers and EFER, or executes MOV to CR4 for ever. */
#include "bare.h"

enum { TS = 1 << 3, EM = 1 << 2, MP = 1 << 1, WP = 1 << 16, CD = 1 << 30, NW = 1 << 29, PE = 1 };
enum { TSD = 1 << 2, DE = 1 << 3, OSFXSR = 1 << 9, UMIP = 1 << 11, FSGSBASE = 1 << 16 };
enum { BX, CX, DX, NONE = -1 };
#define PAGING 0x80000000u
#define RING_0 false
#define RING_3 true

CODE(writes_control_0, "mov " ACCUMULATOR ", %cr0");
CODE(writes_control_4, "mov " ACCUMULATOR ", %cr4");
CODE(writes_features, "mov $0xc0000080, %ecx\n\txor %edx, %edx\n\twrmsr");
CODE(reads_debug_5, "mov %dr5, " ACCUMULATOR);
CODE(allows_access, ".byte 0x0f, 0x01, 0xcb");                   /* STAC */
CODE(forbids_access, ".byte 0x0f, 0x01, 0xca");                  /* CLAC */
CODE(invalidates_context, ".byte 0x66, 0x0f, 0x38, 0x82, 0x00"); /* INVPCID */
CODE(reads_features, ".byte 0x0f, 0x01, 0xd0");                  /* XGETBV */
CODE(writes_extended, ".byte 0x0f, 0x01, 0xd1");                 /* XSETBV */
CODE(saves, ".byte 0x0f, 0xae, 0x20");                           /* XSAVE */
CODE(restores, ".byte 0x0f, 0xae, 0x28");                        /* XRSTOR */
CODE(reads_processor, ".byte 0xf3, 0x0f, 0xc7, 0xf8");           /* RDPID */
CODE(monitors, ".byte 0x0f, 0x01, 0xc8");                        /* MONITOR */
CODE(waits, ".byte 0x0f, 0x01, 0xc9");                           /* MWAIT */
CODE(draws, ".byte 0x0f, 0xc7, 0xf0");                           /* RDRAND */
CODE(draws_seed, ".byte 0x0f, 0xc7, 0xf8");                      /* RDSEED */
CODE(reads_base, ".byte 0xf3, 0x0f, 0xae, 0xc0");                /* RDFSBASE */
CODE(turns_on, ".byte 0x0f, 0x01, 0xc1");                        /* VMCALL */
CODE(stores_descriptors, "sgdt (" ACCUMULATOR ")");
CODE(stores_gates, "sidt (" ACCUMULATOR ")");
CODE(stores_local, "sldt %ax");
CODE(stores_task, "str %ax");
CODE(stores_status, "smsw %ax");
CODE(reads_time, "rdtsc");
CODE(reads_counter, "rdpmc");
CODE(uses_x87, "fnop");
CODE(waits_for_x87, "fwait");
CODE(uses_mmx, "movd %eax, %mm0");
CODE(uses_vectors, "xorps %xmm0, %xmm0");
CODE(stores, "movl %ecx, (" ACCUMULATOR ")");
#ifndef __x86_64__
CODE(enters, "sysenter");
CODE(entered, "nop");
CODE(leaves, "mov $left, %edx\n\tlea -64(%esp), %ecx\n\tsysexit\nleft:");
CODE(is_within, "mov $2, %ecx\n\tbound %ecx, (%eax)");
CODE(is_below, "mov $-2, %ecx\n\tbound %ecx, (%eax)");
CODE(is_above, "mov $8, %ecx\n\tbound %ecx, (%eax)");
CODE(is_above_in_16, "mov $0x10008, %ecx\n\tboundw %cx, (%eax)");
CODE(adjusts, "mov $0x10, %ecx\n\tmov $3, %edx\n\tarpl %dx, %cx\n\tjnz 1f\n\tcmp $0x13, %ecx\n\tje 2f\n1:\tint3\n2:");
static const int32_t bounds[] = {-1, 7};
static const int16_t bounds_of_16[] = {-1, 7};
static uint8_t its_stack[4096];
#endif

static uint32_t identification(unsigned leaf, int where) {
    uint32_t a = leaf, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return where == BX ? b : where == CX ? c : d;
}

static word control_0(void) {
    word value;
    __asm__ volatile("mov %%cr0, %0" : "=r"(value));
    return value;
}

static word control_4(void) {
    word value;
    __asm__ volatile("mov %%cr4, %0" : "=r"(value));
    return value;
}

static void set_control_0(word value) { __asm__ volatile("mov %0, %%cr0" : : "r"(value) : "memory"); }
static void set_control_4(word value) { __asm__ volatile("mov %0, %%cr4" : : "r"(value) : "memory"); }

/* Vector `vector` within it, or none: what is undefined behind is reached */
#define raises(name, user, argument, vector) raises_(name, name##_end, user, argument, vector)
static bool raises_(const char* code, const char* end, bool is_user, word argument, int vector) {
    try(code, is_user, argument);
    word place = seen.ip;
    if (vector == NONE) return seen.vector == UNDEFINED && place == (word)end;
    return seen.vector == (word)vector && place >= (word)code && place < (word)end;
}

static const struct {
    const char* what;
    unsigned leaf;
    int where, bit, control; /* CPUID's bit; CR4's */
    const char *code, *end;
} features[] = {
    {"SMAP: STAC", 7, BX, 20, 21, allows_access, allows_access_end},
    {"SMAP: CLAC", 7, BX, 20, NONE, forbids_access, forbids_access_end},
    {"INVPCID", 7, BX, 10, NONE, invalidates_context, invalidates_context_end},
    {"RDPID", 7, CX, 22, NONE, reads_processor, reads_processor_end},
    {"MONITOR", 1, CX, 3, NONE, monitors, monitors_end},
    {"MWAIT", 1, CX, 3, NONE, waits, waits_end},
    {"RDRAND", 1, CX, 30, NONE, draws, draws_end},
    {"PCID", 1, CX, 17, 17, 0, 0},
    {"VMX", 1, CX, 5, 13, 0, 0},
    {"SMX", 1, CX, 6, 14, 0, 0},
    {"FSGSBASE", 7, BX, 0, 16, 0, 0},
    {"XSAVE", 1, CX, 26, 18, 0, 0},
    {"SMEP", 7, BX, 7, 20, 0, 0},
    {"PKU", 7, CX, 3, 22, 0, 0},
    {"CET", 7, CX, 7, 23, 0, 0},
    {"PKS", 7, CX, 31, 24, 0, 0},
    {"UMIP", 7, CX, 2, 11, 0, 0},
    {"VME", 1, DX, 1, 0, 0, 0},
    {"DE", 1, DX, 2, 3, 0, 0},
    {"MCE", 1, DX, 7, 6, 0, 0},
    {"PGE", 1, DX, 13, 7, 0, 0},
};

static void reserved(void) {
    check(raises(writes_control_4, RING_0, control_4() | 1u << 31, PROTECTION), "CR4: a reserved bit", seen.vector);
    check(raises(writes_features, RING_0, 0x80000000, PROTECTION), "EFER: a reserved bit", seen.vector);
    check(raises(writes_control_0, RING_0, PAGING, PROTECTION), "CR0: PG without PE", seen.vector);
    word uncached = (control_0() | NW) & ~(word)CD;
    check(raises(writes_control_0, RING_0, uncached, PROTECTION), "CR0: NW without CD", seen.vector);
    bool seeds = identification(7, BX) >> 18 & 1;
    check(seeds || raises(draws_seed, RING_0, 0, UNDEFINED), "RDSEED", seen.vector);
}

static void offered(void) {
    word control = control_4();
    for (unsigned number = 0; number < sizeof features / sizeof *features; number++) {
        bool is_there = identification(features[number].leaf, features[number].where) >> features[number].bit & 1;
        const char *code = features[number].code, *end = features[number].end;
        bool is_right = is_there || !code || raises_(code, end, RING_0, 0x200000, UNDEFINED);
        if (with_reserved && !is_there && features[number].control >= 0) {
            word changed = control | (word)1 << features[number].control;
            is_right &= raises(writes_control_4, RING_0, changed, PROTECTION) && control_4() == control;
        }
        check(is_right, features[number].what, seen.vector);
    }
    if (with_reserved) reserved();
}

static void undefined_until_enabled(void) {
    check(raises(reads_features, RING_3, 0, UNDEFINED), "CR4.OSXSAVE is clear: XGETBV", seen.vector);
    check(raises(writes_extended, RING_0, 0, UNDEFINED), "CR4.OSXSAVE is clear: XSETBV", seen.vector);
    check(raises(saves, RING_0, 0x200000, UNDEFINED), "CR4.OSXSAVE is clear: XSAVE", seen.vector);
    check(raises(restores, RING_0, 0x200000, UNDEFINED), "CR4.OSXSAVE is clear: XRSTOR", seen.vector);
    check(raises(reads_base, RING_3, 0, UNDEFINED), "CR4.FSGSBASE is clear: RDFSBASE", seen.vector);
    check(raises(turns_on, RING_0, 0, UNDEFINED), "VMCALL", seen.vector);
    if (!(identification(7, BX) & 1)) return;
    set_control_4(control_4() | FSGSBASE);
    check(raises(reads_base, RING_3, 0, LONG ? NONE : UNDEFINED), "CR4.FSGSBASE: RDFSBASE", seen.vector);
    set_control_4(control_4() & ~(word)FSGSBASE);
}

static void forbidden_to_users(void) {
    word control = control_4();
    bool has_umip = identification(7, CX) >> 2 & 1;
    for (unsigned on = 0; on <= has_umip; on++) {
        int vector = on ? PROTECTION : NONE;
        set_control_4(on ? control | UMIP : control);
        check(raises(stores_descriptors, RING_0, 0x200000, NONE), "ring 0: SGDT", seen.vector);
        check(raises(stores_descriptors, RING_3, 0x200000, vector), "ring 3, UMIP: SGDT", seen.vector);
        check(raises(stores_gates, RING_3, 0x200000, vector), "ring 3, UMIP: SIDT", seen.vector);
        check(raises(stores_local, RING_3, 0, vector), "ring 3, UMIP: SLDT", seen.vector);
        check(raises(stores_task, RING_3, 0, vector), "ring 3, UMIP: STR", seen.vector);
        check(raises(stores_status, RING_3, 0, vector), "ring 3, UMIP: SMSW", seen.vector);
    }
    set_control_4(control | TSD);
    check(raises(reads_time, RING_3, 0, PROTECTION), "ring 3, CR4.TSD: RDTSC", seen.vector);
    check(raises(reads_time, RING_0, 0, NONE), "ring 0, CR4.TSD: RDTSC", seen.vector);
    set_control_4(control);
    check(raises(reads_time, RING_3, 0, NONE), "ring 3: RDTSC", seen.vector);
    check(raises(reads_counter, RING_3, 0, PROTECTION), "ring 3, CR4.PCE is clear: RDPMC", seen.vector);
    check(raises(reads_debug_5, RING_0, 0, NONE), "CR4.DE is clear: DR5 is DR7", seen.vector);
    set_control_4(control | DE);
    check(raises(reads_debug_5, RING_0, 0, UNDEFINED), "CR4.DE: DR5", seen.vector);
    set_control_4(control);
}

static void units(void) {
    word control = control_0() & ~(word)(TS | EM | MP);
    set_control_0(control | TS);
    check(raises(uses_x87, RING_3, 0, NO_MATH), "CR0.TS: x87", seen.vector);
    check(raises(uses_mmx, RING_3, 0, NO_MATH), "CR0.TS: MMX", seen.vector);
    check(raises(uses_vectors, RING_3, 0, NO_MATH), "CR0.TS: SSE", seen.vector);
    check(raises(waits_for_x87, RING_3, 0, NONE), "CR0.TS: FWAIT", seen.vector);
    set_control_0(control | TS | MP);
    check(raises(waits_for_x87, RING_3, 0, NO_MATH), "CR0.TS, CR0.MP: FWAIT", seen.vector);
    __asm__ volatile("clts");
    check(raises(uses_x87, RING_3, 0, NONE), "CLTS: x87", seen.vector);
    check(raises(uses_vectors, RING_3, 0, NONE), "CLTS: SSE", seen.vector);
    set_control_0(control | EM);
    check(raises(uses_x87, RING_3, 0, NO_MATH), "CR0.EM: x87", seen.vector);
    check(raises(uses_mmx, RING_3, 0, UNDEFINED), "CR0.EM: MMX", seen.vector);
    check(raises(uses_vectors, RING_3, 0, UNDEFINED), "CR0.EM: SSE", seen.vector);
    set_control_0(control);
    set_control_4(control_4() & ~(word)OSFXSR);
    check(raises(uses_vectors, RING_3, 0, UNDEFINED), "CR4.OSFXSR is clear: SSE", seen.vector);
    set_control_4(control_4() | OSFXSR);
    set_control_0(control & ~(word)WP);
    check(raises(stores, RING_0, PIECES + READ_ONLY + 64, NONE), "CR0.WP is clear: ring 0 stores", seen.vector);
    check(raises(stores, RING_3, PIECES + READ_ONLY + 64, PAGE), "CR0.WP is clear: ring 3 does not", seen.vector);
    set_control_0(control | WP);
    check(raises(stores, RING_0, PIECES + READ_ONLY + 64, PAGE), "CR0.WP: nor does ring 0", seen.vector);
}

#ifndef __x86_64__
static void set_msr(uint32_t number, uint32_t value) { __asm__ volatile("wrmsr" : : "c"(number), "a"(value), "d"(0)); }

static void of_32_bits(void) {
    check(identification(1, DX) >> 11 & 1, "SYSENTER is offered", 0);
    check(raises(enters, RING_3, 0, PROTECTION), "SYSENTER: IA32_SYSENTER_CS is zero", seen.vector);
    set_msr(0x174, 8);
    set_msr(0x175, (uint32_t)(its_stack + sizeof its_stack));
    set_msr(0x176, (uint32_t)entered);
    try(enters, RING_3, 0);
    check(seen.ip == (word)entered_end && seen.cs == 8, "SYSENTER", seen.ip);
    check(raises(leaves, RING_3, 0, PROTECTION), "ring 3: SYSEXIT", seen.vector);
    check(raises(leaves, RING_0, 0, NONE) && seen.cs == 0x1b, "SYSEXIT", seen.cs);
    set_msr(0x174, 0);
    for (int user = 0; user < 2; user++) {
        check(raises(is_within, user, (word)bounds, NONE), "BOUND: within", seen.vector);
        check(raises(is_below, user, (word)bounds, RANGE), "BOUND: below", seen.vector);
        check(raises(is_above, user, (word)bounds, RANGE), "BOUND: above", seen.vector);
        check(raises(is_above_in_16, user, (word)bounds_of_16, RANGE), "BOUND: of 16 bits", seen.vector);
        check(raises(is_within, user, PIECES + NOT_THERE, PAGE), "BOUND: bounds that are not there", seen.vector);
        check(raises(adjusts, user, 0, NONE), "ARPL", seen.vector);
    }
}
#endif

void check_features(void) {
    offered();
    undefined_until_enabled();
    forbidden_to_users();
    units();
#ifndef __x86_64__
    of_32_bits();
#endif
}
