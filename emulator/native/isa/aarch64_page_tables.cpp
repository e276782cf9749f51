#include "isa/aarch64_page_tables.hpp"

#include "isa/aarch64_system_register.hpp"

namespace perfemu::aarch64 {
namespace {

constexpr bool bit_at(uint64_t value, unsigned number) { return value >> number & 1; }
constexpr uint64_t field_of(uint64_t value, unsigned lowest, unsigned bits) {
    return value >> lowest & ((uint64_t{1} << bits) - 1);
}

constexpr unsigned SCTLR_M = 0, SCTLR_WXN = 19;
constexpr unsigned CPACR_FPEN = 20;  // 0b01: EL0 is trapped; 0b11: nobody is
constexpr unsigned TCR_EPD0 = 7, TCR_EPD1 = 23, TCR_TBI0 = 37, TCR_TBI1 = 38;
constexpr uint64_t TG0_4K = 0b00, TG1_4K = 0b10;
constexpr unsigned PSTATE_EL = 2, PSTATE_PAN = 22, PSTATE_UAO = 23;

// Arm ARM DDI 0487, "VMSAv8-64 Table descriptor format" and "... Block descriptor and Page descriptor formats".
constexpr unsigned VALID = 0, TABLE_OR_PAGE = 1, USER_ACCESS = 6, READ_ONLY = 7, ACCESSED = 10, NOT_GLOBAL = 11;
constexpr unsigned PRIVILEGED_EXECUTE_NEVER = 53, USER_EXECUTE_NEVER = 54;
constexpr unsigned TABLE_PRIVILEGED_EXECUTE_NEVER = 59, TABLE_USER_EXECUTE_NEVER = 60, TABLE_NO_USER_ACCESS = 61,
                   TABLE_READ_ONLY = 62;
constexpr uint64_t OUTPUT_ADDRESS = 0x0000'ffff'ffff'f000;
constexpr unsigned LAST_LEVEL = 3, FIRST_LEVEL_WITH_BLOCKS = 1, LEVEL_BITS = 9, OUTPUT_BITS = 48, LEAST_BITS = 25;

// What a descriptor allows, with the limits of the tables above it.
struct Attributes {
    bool user = true, writable = true, privileged_execute_never = false, user_execute_never = false;

    void limit_by_table(uint64_t descriptor) {
        user &= !bit_at(descriptor, TABLE_NO_USER_ACCESS);
        writable &= !bit_at(descriptor, TABLE_READ_ONLY);
        privileged_execute_never |= bit_at(descriptor, TABLE_PRIVILEGED_EXECUTE_NEVER);
        user_execute_never |= bit_at(descriptor, TABLE_USER_EXECUTE_NEVER);
    }
    void limit_by_page(uint64_t descriptor) {
        user &= bit_at(descriptor, USER_ACCESS);
        writable &= !bit_at(descriptor, READ_ONLY);
        privileged_execute_never |= bit_at(descriptor, PRIVILEGED_EXECUTE_NEVER);
        user_execute_never |= bit_at(descriptor, USER_EXECUTE_NEVER);
    }
    uint8_t data() const { return READ | (writable ? WRITE : 0); }
};

}  // namespace

// With the MMU off.
PageWalk PageTables::physical(uint64_t address) const {
    PageWalk walk;
    walk.output = address;
    if (address >> OUTPUT_BITS) {
        walk.fault = WalkFault::ADDRESS_SIZE;
    } else if (!is_ram(address)) {
        walk.fault = WalkFault::EXTERNAL;
        walk.page.protection = READ | WRITE;
    } else {
        walk.page = {.frame = frame_of(address), .protection = READ | WRITE | EXECUTE, .present = true};
    }
    return walk;
}

GuestPageTables::Registers PageTables::read(uc_engine* engine, std::string& refusal) {
    const uint64_t sctlr = read_system_register(engine, SCTLR_EL1), tcr = read_system_register(engine, TCR_EL1);
    const uint64_t ttbr0 = read_system_register(engine, TTBR0_EL1), ttbr1 = read_system_register(engine, TTBR1_EL1);
    uint64_t pstate = 0;
    uc_reg_read(engine, UC_ARM64_REG_PSTATE, &pstate);
    const Level level = field_of(pstate, PSTATE_EL, 2) ? Level::KERNEL : Level::USER;
    uint64_t cpacr = 0;
    uc_reg_read(engine, UC_ARM64_REG_CPACR_EL1, &cpacr);
    vectors_are_off_ = !bit_at(cpacr, CPACR_FPEN) || (level == Level::USER && !bit_at(cpacr, CPACR_FPEN + 1));
    enabled_ = bit_at(sctlr, SCTLR_M);
    write_implies_never_execute_ = bit_at(sctlr, SCTLR_WXN);
    privileged_access_never_ = bit_at(pstate, PSTATE_PAN);
    user_access_override_ = bit_at(pstate, PSTATE_UAO);
    auto half = [tcr](uint64_t root, unsigned size_at, unsigned disabled, unsigned ignores_tags) {
        return Half{.root = root & OUTPUT_ADDRESS & ~uint64_t{1},
                    .address_bits = static_cast<unsigned>(64 - field_of(tcr, size_at, 6)),
                    .disabled = bit_at(tcr, disabled),
                    .ignores_tags = bit_at(tcr, ignores_tags)};
    };
    lower_ = half(ttbr0, 0, TCR_EPD0, TCR_TBI0);
    upper_ = half(ttbr1, 16, TCR_EPD1, TCR_TBI1);
    const bool other_granule =
        (!lower_.disabled && field_of(tcr, 14, 2) != TG0_4K) || (!upper_.disabled && field_of(tcr, 30, 2) != TG1_4K);
    if (enabled_ && other_granule) refusal = "page tables of another granule than 4 KiB are not modelled (TCR_EL1)";
    const uint64_t state = vectors_are_off_ << 1 | privileged_access_never_;
    if (!enabled_) return {.level = level, .state = state};
    const uint64_t control = sctlr & (1 << SCTLR_M | 1 << SCTLR_WXN);
    return {.level = level,
            .state = state,
            .tables = {ttbr0, ttbr1, tcr, control},
            .common = {0, upper_.root, tcr, control}};
}

PageWalk PageTables::walk(uint64_t address, Level level) const {
    if (!enabled_) return physical(address);
    constexpr unsigned HALF_BIT = 55;
    const bool is_upper = bit_at(address, HALF_BIT);
    const Half& half = is_upper ? upper_ : lower_;
    PageWalk walk;
    walk.fault = WalkFault::TRANSLATION;
    if (half.disabled || half.address_bits > OUTPUT_BITS || half.address_bits < LEAST_BITS) return walk;
    // The bits above those that are translated are all as the half's, without the tag.
    const uint64_t above = (is_upper ? ~address : address) >> half.address_bits;
    const unsigned checked = (half.ignores_tags ? HALF_BIT + 1 : 64) - half.address_bits;
    if (field_of(above, 0, checked)) return walk;
    unsigned at = LAST_LEVEL - (half.address_bits - PAGE_SHIFT - 1) / LEVEL_BITS;
    uint64_t table = half.root;
    Attributes attributes;
    for (;; at++) {
        walk.level = static_cast<uint8_t>(at);
        const unsigned shift = PAGE_SHIFT + LEVEL_BITS * (LAST_LEVEL - at);
        const unsigned bits = walk.reads ? LEVEL_BITS : half.address_bits - shift;
        const auto found = descriptor(table + 8 * field_of(address, shift, bits), walk);
        if (!found) {
            walk.fault = WalkFault::EXTERNAL;
            return walk;
        }
        const bool is_table = bit_at(*found, TABLE_OR_PAGE) && at < LAST_LEVEL;
        const bool is_block = !bit_at(*found, TABLE_OR_PAGE) && at < LAST_LEVEL;
        if (!bit_at(*found, VALID) || (at == LAST_LEVEL && !bit_at(*found, TABLE_OR_PAGE)) ||
            (is_block && at < FIRST_LEVEL_WITH_BLOCKS))
            return walk;
        if (is_table) {
            attributes.limit_by_table(*found);
            table = *found & OUTPUT_ADDRESS;
            continue;
        }
        attributes.limit_by_page(*found);
        if (!bit_at(*found, ACCESSED)) {
            walk.fault = WalkFault::ACCESS_FLAG;
            return walk;
        }
        const uint64_t within = (uint64_t{1} << shift) - 1;
        const uint64_t output = (*found & OUTPUT_ADDRESS & ~within) | (address & within);
        walk.output = output;
        walk.is_local = !is_upper || bit_at(*found, NOT_GLOBAL);
        walk.block_shift = at < LAST_LEVEL ? static_cast<uint8_t>(shift) : 0;
        walk.fault = is_ram(output) ? WalkFault::NONE : WalkFault::EXTERNAL;
        const bool is_user = level == Level::USER;
        uint8_t protection = 0;
        if (is_user ? attributes.user : !(attributes.user && privileged_access_never_)) protection = attributes.data();
        // What user mode may write, a kernel does not execute.
        const bool never_executed =
            is_user ? attributes.user_execute_never
                    : attributes.privileged_execute_never || (attributes.user && attributes.writable);
        const bool written = attributes.writable && write_implies_never_execute_;
        if (!never_executed && !written) protection |= EXECUTE;
        walk.page = {.frame = walk.fault == WalkFault::NONE ? frame_of(output) : Frame{},
                     .protection = protection,
                     .present = walk.fault == WalkFault::NONE};
        return walk;
    }
}

}  // namespace perfemu::aarch64
