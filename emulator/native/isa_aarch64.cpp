// AArch64: registers, user mode and single-step as Unicorn has them, and what each instruction is.
#include <array>
#include <cstring>
#include <string_view>

#include "isa.hpp"

namespace perfemu {
namespace {

struct SystemRegister {
    uint32_t op0, op1, crn, crm, op2;
};
constexpr SystemRegister SCTLR_EL1{3, 0, 1, 0, 0};
constexpr SystemRegister MDSCR_EL1{2, 0, 0, 2, 2};
constexpr SystemRegister SCR_EL3{3, 6, 1, 1, 0};
constexpr SystemRegister TCR_EL1{3, 0, 2, 0, 2};

constexpr uint64_t SCTLR_DZE = 1 << 14, SCTLR_UCT = 1 << 15, SCTLR_nTWI = 1 << 16, SCTLR_nTWE = 1 << 18,
                   SCTLR_UCI = 1 << 26;
constexpr uint64_t SCR_RW = 1 << 10;
constexpr uint64_t TCR_TBI0 = uint64_t{1} << 37;  // Linux: Documentation/arch/arm64/tagged-pointers.rst
constexpr uint64_t MDSCR_SS = 1 << 0, MDSCR_MDE = 1 << 15;
constexpr uint64_t PSTATE_SS = 1 << 21;

uint64_t access(uc_engine* engine, SystemRegister which, const uint64_t* value) {
    uc_arm64_cp_reg reg{.crn = which.crn, .crm = which.crm, .op0 = which.op0, .op1 = which.op1, .op2 = which.op2};
    if (value) {
        reg.val = *value;
        uc_reg_write(engine, UC_ARM64_REG_CP_REG, &reg);
    } else {
        uc_reg_read(engine, UC_ARM64_REG_CP_REG, &reg);
    }
    return reg.val;
}

void write_system_register(uc_engine* engine, SystemRegister which, uint64_t value) { access(engine, which, &value); }
uint64_t read_system_register(uc_engine* engine, SystemRegister which) { return access(engine, which, nullptr); }

constexpr std::array REGISTERS = {
    UC_ARM64_REG_X0,   UC_ARM64_REG_X1,  UC_ARM64_REG_X2,  UC_ARM64_REG_X3,   UC_ARM64_REG_X4,        UC_ARM64_REG_X5,
    UC_ARM64_REG_X6,   UC_ARM64_REG_X7,  UC_ARM64_REG_X8,  UC_ARM64_REG_X9,   UC_ARM64_REG_X10,       UC_ARM64_REG_X11,
    UC_ARM64_REG_X12,  UC_ARM64_REG_X13, UC_ARM64_REG_X14, UC_ARM64_REG_X15,  UC_ARM64_REG_X16,       UC_ARM64_REG_X17,
    UC_ARM64_REG_X18,  UC_ARM64_REG_X19, UC_ARM64_REG_X20, UC_ARM64_REG_X21,  UC_ARM64_REG_X22,       UC_ARM64_REG_X23,
    UC_ARM64_REG_X24,  UC_ARM64_REG_X25, UC_ARM64_REG_X26, UC_ARM64_REG_X27,  UC_ARM64_REG_X28,       UC_ARM64_REG_X29,
    UC_ARM64_REG_X30,  UC_ARM64_REG_SP,  UC_ARM64_REG_PC,  UC_ARM64_REG_NZCV, UC_ARM64_REG_TPIDR_EL0, UC_ARM64_REG_FPCR,
    UC_ARM64_REG_FPSR,
};
constexpr std::array SYSCALL_REGISTERS = {UC_ARM64_REG_X8, UC_ARM64_REG_X0, UC_ARM64_REG_X1, UC_ARM64_REG_X2,
                                          UC_ARM64_REG_X3, UC_ARM64_REG_X4, UC_ARM64_REG_X5};
static_assert(sizeof(REGISTERS[0]) == sizeof(int));

// System registers that user mode reaches in the engine itself; all others are for the machine to answer.
constexpr uint16_t encode(uint32_t op0, uint32_t op1, uint32_t crn, uint32_t crm, uint32_t op2) {
    return static_cast<uint16_t>(op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2);
}
constexpr std::array EXECUTED_REGISTERS = {
    encode(3, 3, 13, 0, 2),  // TPIDR_EL0
    encode(3, 3, 13, 0, 3),  // TPIDRRO_EL0
    encode(3, 3, 4, 2, 0),   // NZCV
    encode(3, 3, 4, 4, 0),   // FPCR
    encode(3, 3, 4, 4, 1),   // FPSR
    encode(3, 3, 0, 0, 1),   // CTR_EL0
    encode(3, 3, 0, 0, 7),   // DCZID_EL0
};

bool executed(uint16_t encoding) {
    for (uint16_t known : EXECUTED_REGISTERS)
        if (known == encoding) return true;
    return false;
}

// Instructions by the bits of their encoding (Arm ARM DDI 0487, "A64 instruction set encoding"); the first row that
// matches decides.
struct Row {
    uint32_t mask, value;
    ProbeMask probes;
};
constexpr ProbeMask BRANCH = mask(Probe::BR_RETIRED, Probe::BR_TAKEN);
constexpr ProbeMask CONDITIONAL = mask(Probe::BR_RETIRED, Probe::BR_COND, Probe::BR_IMMED);
constexpr ProbeMask READ_MODIFY_WRITE = mask(Probe::LOAD, Probe::STORE);

constexpr Row ROWS[] = {
    // branches, to the bit: a word that only looks like one is undefined, and must not be taken for a jump to itself;
    // the engine's Cortex-A72 has no pointer authentication (BRAA, RETAA ...)
    {0xfc000000, 0x14000000, BRANCH | bit(Probe::BR_IMMED)},                      // B
    {0xfc000000, 0x94000000, BRANCH | mask(Probe::BR_IMMED, Probe::BR_CALL)},     // BL
    {0xff000010, 0x54000000, CONDITIONAL},                                        // B.cond
    {0x7e000000, 0x34000000, CONDITIONAL},                                        // CBZ, CBNZ
    {0x7e000000, 0x36000000, CONDITIONAL},                                        // TBZ, TBNZ
    {0xfffffc1f, 0xd65f0000, BRANCH | bit(Probe::BR_RETURN)},                     // RET
    {0xfffffc1f, 0xd63f0000, BRANCH | mask(Probe::BR_INDIRECT, Probe::BR_CALL)},  // BLR
    {0xfffffc1f, 0xd61f0000, BRANCH | bit(Probe::BR_INDIRECT)},                   // BR
    // barriers
    {0xfffff0ff, 0xd50330bf, bit(Probe::DMB)},
    {0xfffff0ff, 0xd503309f, bit(Probe::DSB)},
    {0xfffff0ff, 0xd50330df, bit(Probe::ISB)},
    // DC ZVA is a store; DC GVA and the other cache operations are none
    {0xffffffe0, 0xd50b7420, bit(Probe::STORE)},
    // loads and stores
    {0xbfa07c00, 0x08207c00, READ_MODIFY_WRITE},                           // CASP
    {0x3fa07c00, 0x08a07c00, READ_MODIFY_WRITE},                           // CAS
    {0x3fe00000, 0x08000000, mask(Probe::STORE, Probe::STORE_EXCLUSIVE)},  // STXR, STLXR
    {0xbfe00000, 0x88200000, mask(Probe::STORE, Probe::STORE_EXCLUSIVE)},  // STXP, STLXP
    {0x3fe00000, 0x08400000, mask(Probe::LOAD, Probe::LOAD_EXCLUSIVE)},    // LDXR, LDAXR
    {0xbfe00000, 0x88600000, mask(Probe::LOAD, Probe::LOAD_EXCLUSIVE)},    // LDXP, LDAXP
    {0x3fe00000, 0x08800000, bit(Probe::STORE)},                           // STLR, STLLR
    {0x3fe00000, 0x08c00000, bit(Probe::LOAD)},                            // LDAR, LDLAR
    {0x3b200c00, 0x38200000, READ_MODIFY_WRITE},                           // LDADD ... SWP (LDAPR: below)
    {0xff000000, 0xd8000000, 0},                                           // PRFM (literal)
    {0x3b000000, 0x18000000, bit(Probe::LOAD)},                            // LDR (literal)
    {0xffc00000, 0xf9800000, 0},                                           // PRFM (immediate)
    {0xffe00c00, 0xf8a00800, 0},                                           // PRFM (register)
    {0xffe00c00, 0xf8800000, 0},                                           // PRFUM
    {0x3a400000, 0x28400000, bit(Probe::LOAD)},                            // LDP, LDNP, LDPSW
    {0x3a400000, 0x28000000, bit(Probe::STORE)},                           // STP, STNP
    {0x3f400000, 0x3d400000, bit(Probe::LOAD)},                            // LDR (SIMD, immediate)
    {0x3f400000, 0x3d000000, bit(Probe::STORE)},                           // STR (SIMD, immediate)
    {0x3f400000, 0x3c400000, bit(Probe::LOAD)},                            // LDR, LDUR (SIMD)
    {0x3f400000, 0x3c000000, bit(Probe::STORE)},                           // STR, STUR (SIMD)
    {0x3ac00000, 0x38000000, bit(Probe::STORE)},                           // STR*, STUR*, STTR*
    {0x3a000000, 0x38000000, bit(Probe::LOAD)},                            // LDR*, LDUR*, LDTR*
    {0xbf400000, 0x0c400000, bit(Probe::LOAD)},                            // LD1..LD4, LD1R..LD4R
    {0xbf400000, 0x0d400000, bit(Probe::LOAD)},
    {0xbe400000, 0x0c000000, bit(Probe::STORE)},  // ST1..ST4
    // Advanced SIMD, scalar floating point, cryptography
    {0xff3e0c00, 0x4e280800, bit(Probe::CRYPTO_OP)},  // AESE ...
    {0xff208c00, 0x5e000000, bit(Probe::CRYPTO_OP)},  // SHA1C ...
    {0xff3e0c00, 0x5e280800, bit(Probe::CRYPTO_OP)},  // SHA1H ...
    {0x5f000000, 0x1e000000, bit(Probe::FP_OP)},      // FADD, FMOV, SCVTF ...
    {0x5f000000, 0x1f000000, bit(Probe::FP_OP)},      // FMADD ...
    {0x0e000000, 0x0e000000, bit(Probe::SIMD_OP)},
    // integer data processing
    {0x7fe0f800, 0x1ac00800, mask(Probe::INT_OP, Probe::DIV_OP)},  // UDIV, SDIV
    {0x7f000000, 0x1b000000, mask(Probe::INT_OP, Probe::MUL_OP)},  // MADD, SMULL ...
    {0x1c000000, 0x10000000, bit(Probe::INT_OP)},                  // immediate
    {0x0e000000, 0x0a000000, bit(Probe::INT_OP)},                  // register
};

// LDAPR shares the atomics' space: it only loads.
constexpr uint32_t LDAPR_MASK = 0x3ffffc00, LDAPR = 0x38bfc000;

// MRS and MSR (register): 1101 0101 00L1 o0 ...
constexpr uint32_t SYSTEM_MASK = 0xffd00000, SYSTEM_MOVE = 0xd5100000, SYSTEM_READ = 1 << 21;
constexpr size_t INSTRUCTION_BYTES = 4;
constexpr uint32_t UNDEFINED = 0;  // UDF
constexpr uint32_t HLT_MASK = 0xffe0001f, HLT = 0xd4400000;

ProbeMask classify(uint32_t word) {
    if ((word & LDAPR_MASK) == LDAPR) return bit(Probe::LOAD);
    for (const Row& row : ROWS)
        if ((word & row.mask) == row.value) return row.probes;
    return 0;
}

class Aarch64 final : public Isa {
  public:
    std::string_view name() const override { return "aarch64"; }
    uc_arch engine_arch() const override { return UC_ARCH_ARM64; }
    uc_mode engine_mode() const override { return UC_MODE_ARM; }

    void configure(uc_engine* engine) const override {
        uc_ctl_set_cpu_model(engine, UC_CPU_ARM64_A72);
        uc_ctl_set_page_size(engine, 4096);
    }

    void enter_user_mode(uc_engine* engine) const override {
        uint64_t sctlr = read_system_register(engine, SCTLR_EL1);
        write_system_register(engine, SCTLR_EL1, sctlr | SCTLR_DZE | SCTLR_UCT | SCTLR_nTWI | SCTLR_nTWE | SCTLR_UCI);
        write_system_register(engine, TCR_EL1, TCR_TBI0);
        uint64_t floating_point = 3 << 20;  // CPACR_EL1.FPEN
        write_register(engine, UC_ARM64_REG_CPACR_EL1, floating_point);
        write_register(engine, UC_ARM64_REG_PSTATE, 0);  // EL0
        write_system_register(engine, SCR_EL3, SCR_RW);  // and this write makes the engine notice
    }

    std::span<const int> registers() const override {
        return {reinterpret_cast<const int*>(REGISTERS.data()), REGISTERS.size()};
    }
    int pc() const override { return UC_ARM64_REG_PC; }
    int frame_pointer() const override { return UC_ARM64_REG_X29; }
    std::span<const int, 7> syscall_registers() const override {
        return std::span<const int, 7>(reinterpret_cast<const int*>(SYSCALL_REGISTERS.data()), 7);
    }
    int first_vector() const override { return UC_ARM64_REG_Q0; }
    unsigned vectors() const override { return 32; }

    void set_stepping(uc_engine* engine, bool on) const override {
        uint64_t pstate = read_register(engine, UC_ARM64_REG_PSTATE) & ~PSTATE_SS;
        write_register(engine, UC_ARM64_REG_PSTATE, on ? pstate | PSTATE_SS : pstate);
        write_system_register(engine, MDSCR_EL1, on ? MDSCR_SS | MDSCR_MDE : 0);
    }

    void rearm_stepping(uc_engine* engine) const override {
        write_register(engine, UC_ARM64_REG_PSTATE, read_register(engine, UC_ARM64_REG_PSTATE) | PSTATE_SS);
    }

    void complete_syscall(uc_engine*) const override {}

    std::vector<Op> decode(uint64_t address, std::span<const uint8_t> bytes) override {
        if (address % INSTRUCTION_BYTES) {  // the engine would execute it
            Op op = decode_one(UNDEFINED);
            op.trap = Trap::UNDEFINED;
            return {op};
        }
        std::vector<Op> ops(bytes.size() / 4);
        for (size_t i = 0; i < ops.size(); i++) {
            uint32_t word;
            std::memcpy(&word, bytes.data() + 4 * i, 4);
            ops[i] = decode_one(word);
            ops[i].offset = static_cast<uint16_t>(4 * i);
        }
        return ops;
    }

    uint64_t faulting_operand(uc_engine* engine, const AddressSpace&, uint64_t pc, std::span<const uint8_t> bytes,
                              uint64_t page) override;

    // Of exclusives and ordered accesses: all have a base register and nothing else.
    uint64_t misaligned_operand(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes) override {
        if (pc % INSTRUCTION_BYTES || bytes.size() < INSTRUCTION_BYTES) return pc;
        uint32_t word;
        std::memcpy(&word, bytes.data(), sizeof word);
        return untagged(read_register(engine, REGISTERS[word >> 5 & 31]));
    }

    uint64_t untagged(uint64_t address) const override {
        constexpr uint64_t UPPER_HALF = uint64_t{1} << 55, TAG = uint64_t{0xff} << 56;
        return address & UPPER_HALF ? address : address & ~TAG;
    }

  private:
    static Op decode_one(uint32_t word) {
        Op op{.probes = mask(Probe::INST_RETIRED, Probe::CYCLES) | classify(word), .length = 4};
        op.conditional = op.probes & bit(Probe::BR_COND);
        if ((word & SYSTEM_MASK) == SYSTEM_MOVE) {
            auto encoding = static_cast<uint16_t>(word >> 5 & 0x7fff) | 1 << 15;
            if (!executed(static_cast<uint16_t>(encoding))) {
                op.trap = word & SYSTEM_READ ? Trap::MRS : Trap::MSR;
                op.trap_encoding = static_cast<uint16_t>(encoding);
                op.trap_register = static_cast<int8_t>(word & 31);
            }
        } else if ((word & HLT_MASK) == HLT) {
            op.trap = Trap::UNDEFINED;
        }
        return op;
    }
};

int64_t signed_field(uint32_t word, unsigned lowest, unsigned bits) {
    return static_cast<int64_t>(static_cast<uint64_t>(word >> lowest) << (64 - bits)) >> (64 - bits);
}

// Where an instruction that accesses memory does so; `value` reads a general register, 31 being SP. What is none of
// these has a base register and nothing else. Arm ARM DDI 0487, "Loads and Stores".
template <typename Value>
uint64_t operand_address(uint32_t word, uint64_t pc, Value value) {
    const bool vector = word >> 26 & 1;
    const uint32_t size = word >> 30;
    const uint64_t base = value(word >> 5 & 31);
    if ((word & 0x3b000000) == 0x18000000)  // literal
        return pc + static_cast<uint64_t>(signed_field(word, 5, 19) * 4);
    if ((word & 0xffffffe0) == 0xd50b7420) return value(word & 31);  // DC ZVA
    if ((word & 0x3a000000) == 0x28000000) {                         // pairs
        const bool post_indexed = (word >> 23 & 3) == 1;
        const unsigned scale = vector ? 2 + size : 2 + (size >> 1);
        return post_indexed ? base : base + (static_cast<uint64_t>(signed_field(word, 15, 7)) << scale);
    }
    const unsigned scale = vector && word >> 23 & 1 ? 4 : size;
    if ((word & 0x3b000000) == 0x39000000) return base + (uint64_t{word >> 10 & 0xfff} << scale);
    if ((word & 0x3b200000) == 0x38000000) {
        const bool post_indexed = (word >> 10 & 3) == 1;
        return post_indexed ? base : base + static_cast<uint64_t>(signed_field(word, 12, 9));
    }
    if ((word & 0x3b200c00) == 0x38200800) {
        constexpr uint32_t UXTW = 2, SXTW = 6;
        const uint32_t index = word >> 16 & 31, extend = word >> 13 & 7;
        uint64_t offset = index == 31 ? 0 : value(index);
        if (extend == UXTW) offset = static_cast<uint32_t>(offset);
        if (extend == SXTW) offset = static_cast<uint64_t>(int64_t{static_cast<int32_t>(offset)});
        return base + (word >> 12 & 1 ? offset << scale : offset);
    }
    return base;
}

uint64_t Aarch64::faulting_operand(uc_engine* engine, const AddressSpace&, uint64_t pc, std::span<const uint8_t> bytes,
                                   uint64_t page) {
    if (bytes.size() < INSTRUCTION_BYTES) return page;
    uint32_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    auto value = [&](unsigned number) { return read_register(engine, REGISTERS[number]); };
    uint64_t address = untagged(operand_address(word, pc, value));
    return address >> 12 == page >> 12 ? address : page;  // or it crosses into that
}

}  // namespace

std::unique_ptr<Isa> make_aarch64() { return std::make_unique<Aarch64>(); }

}  // namespace perfemu
