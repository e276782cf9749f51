// x86-64: registers, user mode and single-step as Unicorn has them, and what each instruction is.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "instructions/encoding.hpp"
#include "instructions/faulting_address.hpp"
#include "isa.hpp"
#include "memory.hpp"

namespace perfemu {
namespace {

constexpr std::array REGISTERS = {
    UC_X86_REG_RAX,     UC_X86_REG_RBX,     UC_X86_REG_RCX,   UC_X86_REG_RDX,  UC_X86_REG_RSI,  UC_X86_REG_RDI,
    UC_X86_REG_RBP,     UC_X86_REG_RSP,     UC_X86_REG_R8,    UC_X86_REG_R9,   UC_X86_REG_R10,  UC_X86_REG_R11,
    UC_X86_REG_R12,     UC_X86_REG_R13,     UC_X86_REG_R14,   UC_X86_REG_R15,  UC_X86_REG_RIP,  UC_X86_REG_RFLAGS,
    UC_X86_REG_FS_BASE, UC_X86_REG_GS_BASE, UC_X86_REG_MXCSR, UC_X86_REG_FPCW, UC_X86_REG_FPSW, UC_X86_REG_FPTAG,
    UC_X86_REG_DS,      UC_X86_REG_ES,      UC_X86_REG_FS,    UC_X86_REG_GS,
};
constexpr std::array SYSCALL_REGISTERS = {UC_X86_REG_RAX, UC_X86_REG_RDI, UC_X86_REG_RSI, UC_X86_REG_RDX,
                                          UC_X86_REG_R10, UC_X86_REG_R8,  UC_X86_REG_R9};
static_assert(sizeof(REGISTERS[0]) == sizeof(int));

constexpr uint64_t RFLAGS_TF = 1 << 8;

constexpr ProbeMask READ_MODIFY_WRITE = mask(Probe::LOAD, Probe::STORE);

// Instructions whose accesses are implied, or whose operands capstone describes otherwise than they behave.
// They name a memory operand, and leave it alone.
constexpr unsigned NO_ACCESS[] = {X86_INS_LEA,        X86_INS_NOP,        X86_INS_PREFETCH,   X86_INS_PREFETCHNTA,
                                  X86_INS_PREFETCHT0, X86_INS_PREFETCHT1, X86_INS_PREFETCHT2, X86_INS_PREFETCHW,
                                  X86_INS_CLFLUSH,    X86_INS_CLFLUSHOPT, X86_INS_CLWB};
constexpr unsigned PREFETCHES[] = {X86_INS_PREFETCH,   X86_INS_PREFETCHNTA, X86_INS_PREFETCHT0,
                                   X86_INS_PREFETCHT1, X86_INS_PREFETCHT2,  X86_INS_PREFETCHW};
constexpr unsigned LOADS[] = {
    X86_INS_RET,   X86_INS_LEAVE, X86_INS_POPFQ,  X86_INS_POPF,   X86_INS_XLATB,   X86_INS_FLD,       X86_INS_FILD,
    X86_INS_FBLD,  X86_INS_FLDCW, X86_INS_FLDENV, X86_INS_FRSTOR, X86_INS_FXRSTOR, X86_INS_FXRSTOR64, X86_INS_LDMXCSR,
    X86_INS_CMP,   X86_INS_TEST,  X86_INS_BT,     X86_INS_LODSB,  X86_INS_LODSW,   X86_INS_LODSD,     X86_INS_LODSQ,
    X86_INS_SCASB, X86_INS_SCASW, X86_INS_SCASD,  X86_INS_SCASQ,  X86_INS_CMPSB,   X86_INS_CMPSW,     X86_INS_CMPSQ};
constexpr unsigned STORES[] = {X86_INS_PUSHFQ,  X86_INS_PUSHF,      X86_INS_ENTER,    X86_INS_FST,    X86_INS_FSTP,
                               X86_INS_FIST,    X86_INS_FISTP,      X86_INS_FISTTP,   X86_INS_FBSTP,  X86_INS_FNSTCW,
                               X86_INS_FNSTSW,  X86_INS_FNSTENV,    X86_INS_FNSAVE,   X86_INS_FXSAVE, X86_INS_FXSAVE64,
                               X86_INS_STMXCSR, X86_INS_MASKMOVDQU, X86_INS_MASKMOVQ, X86_INS_MOVNTI, X86_INS_MOVNTDQ,
                               X86_INS_MOVNTPS, X86_INS_MOVNTPD,    X86_INS_MOVNTQ,   X86_INS_STOSB,  X86_INS_STOSW,
                               X86_INS_STOSD,   X86_INS_STOSQ,      X86_INS_SETA,     X86_INS_SETAE,  X86_INS_SETB,
                               X86_INS_SETBE,   X86_INS_SETE,       X86_INS_SETG,     X86_INS_SETGE,  X86_INS_SETL,
                               X86_INS_SETLE,   X86_INS_SETNE,      X86_INS_SETNO,    X86_INS_SETNP,  X86_INS_SETNS,
                               X86_INS_SETO,    X86_INS_SETP,       X86_INS_SETS};
constexpr unsigned READ_MODIFY_WRITES[] = {X86_INS_ROL,   X86_INS_ROR,     X86_INS_RCL,       X86_INS_RCR,
                                           X86_INS_MOVSB, X86_INS_MOVSW,   X86_INS_MOVSQ,     X86_INS_XCHG,
                                           X86_INS_XADD,  X86_INS_CMPXCHG, X86_INS_CMPXCHG8B, X86_INS_CMPXCHG16B,
                                           X86_INS_BTS,   X86_INS_BTR,     X86_INS_BTC};

// Those of them that access memory without an operand that says so.
constexpr unsigned IMPLIED[] = {
    X86_INS_RET,    X86_INS_LEAVE, X86_INS_POPFQ, X86_INS_POPF,       X86_INS_XLATB,
    X86_INS_PUSHFQ, X86_INS_PUSHF, X86_INS_ENTER, X86_INS_MASKMOVDQU, X86_INS_MASKMOVQ,
};

constexpr unsigned STRINGS[] = {
    X86_INS_MOVSB, X86_INS_MOVSW, X86_INS_MOVSD, X86_INS_MOVSQ, X86_INS_STOSB, X86_INS_STOSW, X86_INS_STOSD,
    X86_INS_STOSQ, X86_INS_LODSB, X86_INS_LODSW, X86_INS_LODSD, X86_INS_LODSQ, X86_INS_CMPSB, X86_INS_CMPSW,
    X86_INS_CMPSD, X86_INS_CMPSQ, X86_INS_SCASB, X86_INS_SCASW, X86_INS_SCASD, X86_INS_SCASQ,
};
constexpr unsigned COMPARING_STRINGS[] = {
    X86_INS_CMPSB, X86_INS_CMPSW, X86_INS_CMPSD, X86_INS_CMPSQ,
    X86_INS_SCASB, X86_INS_SCASW, X86_INS_SCASD, X86_INS_SCASQ,
};

struct TrapRow {
    unsigned id;
    Trap trap;
};
constexpr TrapRow TRAPS[] = {
    {X86_INS_CPUID, Trap::CPUID},
    {X86_INS_RDTSC, Trap::RDTSC},
    {X86_INS_RDTSCP, Trap::RDTSCP},
    {X86_INS_RDPMC, Trap::RDPMC},
    {X86_INS_XGETBV, Trap::XGETBV},
    // host randomness: CPUID does not offer them
    {X86_INS_RDRAND, Trap::UNDEFINED},
    {X86_INS_RDSEED, Trap::UNDEFINED},
    {X86_INS_SYSENTER, Trap::UNDEFINED},  // as on AMD in 64-bit mode; the engine would jump anywhere
    {X86_INS_VMREAD, Trap::UNDEFINED},    // outside of a virtual machine monitor; the engine reads them as EXTRQ
    {X86_INS_VMWRITE, Trap::UNDEFINED},
    // of extensions that CPUID does not offer; the engine takes them for others, or for privileged
    {X86_INS_MONITOR, Trap::UNDEFINED},
    {X86_INS_MWAIT, Trap::UNDEFINED},
    {X86_INS_XSETBV, Trap::UNDEFINED},
    {X86_INS_XSAVE, Trap::UNDEFINED},
    {X86_INS_XSAVE64, Trap::UNDEFINED},
    {X86_INS_XRSTOR, Trap::UNDEFINED},
    {X86_INS_XRSTOR64, Trap::UNDEFINED},
    {X86_INS_XSAVEOPT, Trap::UNDEFINED},
    {X86_INS_XSAVEOPT64, Trap::UNDEFINED},
    {X86_INS_EXTRQ, Trap::UNDEFINED},
    {X86_INS_INSERTQ, Trap::UNDEFINED},
    {X86_INS_MOVNTSD, Trap::UNDEFINED},
    {X86_INS_MOVNTSS, Trap::UNDEFINED},
    {X86_INS_INCSSPD, Trap::UNDEFINED},
    {X86_INS_INCSSPQ, Trap::UNDEFINED},
    {X86_INS_TPAUSE, Trap::UNDEFINED},
    {X86_INS_UMONITOR, Trap::UNDEFINED},
    {X86_INS_UMWAIT, Trap::UNDEFINED},
    {X86_INS_INT1, Trap::DEBUG},  // the engine's own single-stepping ends with the same exception
};
constexpr int64_t BREAKPOINT_VECTOR = 3;
// What the engine would execute although user mode may not.
constexpr unsigned PRIVILEGED[] = {X86_INS_HLT,    X86_INS_CLI,    X86_INS_STI,    X86_INS_IN,     X86_INS_OUT,
                                   X86_INS_INSB,   X86_INS_INSW,   X86_INS_INSD,   X86_INS_OUTSB,  X86_INS_OUTSW,
                                   X86_INS_OUTSD,  X86_INS_RDMSR,  X86_INS_WRMSR,  X86_INS_LGDT,   X86_INS_LIDT,
                                   X86_INS_LLDT,   X86_INS_LTR,    X86_INS_LMSW,   X86_INS_CLTS,   X86_INS_INVD,
                                   X86_INS_WBINVD, X86_INS_INVLPG, X86_INS_SWAPGS, X86_INS_SYSRET, X86_INS_SYSEXIT};

// Intel SDM vol. 2, LOCK: before these, with a destination in memory; before any other it is an undefined instruction.
constexpr unsigned LOCKABLE[] = {X86_INS_ADD, X86_INS_ADC, X86_INS_AND,     X86_INS_BTC,       X86_INS_BTR,
                                 X86_INS_BTS, X86_INS_DEC, X86_INS_CMPXCHG, X86_INS_CMPXCHG8B, X86_INS_CMPXCHG16B,
                                 X86_INS_INC, X86_INS_NEG, X86_INS_NOT,     X86_INS_OR,        X86_INS_SBB,
                                 X86_INS_SUB, X86_INS_XOR, X86_INS_XADD,    X86_INS_XCHG};

// VEX-encoded instructions on general registers (BMI1, BMI2): the engine executes these, and no other VEX, as they are.
constexpr unsigned VEX_EXECUTED[] = {
    X86_INS_ANDN, X86_INS_BEXTR, X86_INS_BLSI, X86_INS_BLSMSK, X86_INS_BLSR, X86_INS_BZHI, X86_INS_MULX,
    X86_INS_PDEP, X86_INS_PEXT,  X86_INS_RORX, X86_INS_SARX,   X86_INS_SHLX, X86_INS_SHRX,
};

template <size_t N>
bool among(const unsigned (&ids)[N], unsigned id) {
    return std::find(std::begin(ids), std::end(ids), id) != std::end(ids);
}

// Offset of the first byte behind the legacy prefixes.
size_t legacy_prefixes(std::span<const uint8_t> bytes) {
    size_t at = 0;
    while (at < bytes.size() && std::strchr("\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", bytes[at]) && bytes[at])
        at++;
    return at;
}

// Whether one of the prefixes is among the legacy ones. Capstone leaves some out: F2 before A5.
bool prefixed(const cs_insn& insn, std::span<const uint8_t> bytes, std::initializer_list<uint8_t> wanted) {
    std::span<const uint8_t> prefixes = bytes.first(std::min<size_t>(legacy_prefixes(bytes), insn.size));
    return std::find_first_of(prefixes.begin(), prefixes.end(), wanted.begin(), wanted.end()) != prefixes.end();
}

bool lockable(const cs_insn& insn) {
    const cs_x86& detail = insn.detail->x86;
    bool memory = detail.op_count > 0 && (detail.operands[0].type == X86_OP_MEM ||
                                          (insn.id == X86_INS_XCHG && detail.operands[1].type == X86_OP_MEM));
    return memory && among(LOCKABLE, insn.id);
}

// Of MOV: Intel SDM vol. 2, "MOV - Move to/from Control Registers".
bool no_control_register(const cs_insn& insn) {
    static constexpr unsigned EXISTING[] = {X86_REG_CR0, X86_REG_CR2, X86_REG_CR3, X86_REG_CR4, X86_REG_CR8};
    for (const cs_x86_op& operand : std::span(insn.detail->x86.operands, insn.detail->x86.op_count))
        if (operand.type == X86_OP_REG && operand.reg >= X86_REG_CR0 && operand.reg <= X86_REG_CR15)
            return !among(EXISTING, operand.reg);
    return false;
}

// MOV to segment registers, which capstone calls privileged.
bool of_segment(const cs_insn& insn) {
    static constexpr unsigned SEGMENTS[] = {X86_REG_CS, X86_REG_DS, X86_REG_ES, X86_REG_FS, X86_REG_GS, X86_REG_SS};
    const cs_x86_op& destination = insn.detail->x86.operands[0];
    return destination.type == X86_OP_REG && among(SEGMENTS, destination.reg);
}

bool vector_extension_encoded(std::span<const uint8_t> bytes) {
    size_t at = legacy_prefixes(bytes);
    return at < bytes.size() && (bytes[at] == 0xc4 || bytes[at] == 0xc5 || bytes[at] == 0x62);
}

class X8664 final : public Isa {
  public:
    std::string_view name() const override { return "x86_64"; }
    uc_arch engine_arch() const override { return UC_ARCH_X86; }
    uc_mode engine_mode() const override { return UC_MODE_64; }
    void configure(uc_engine*) const override {}  // the default model: Haswell without AVX
    // As FNINIT leaves x87: with no exception unmasked, and no register in use; MXCSR as a reset does.
    void enter_user_mode(uc_engine* engine) const override {
        write_register(engine, UC_X86_REG_MXCSR, 0x1f80);
        write_register(engine, UC_X86_REG_FPCW, 0x37f);
        write_register(engine, UC_X86_REG_FPTAG, 0xffff);
    }

    std::span<const int> registers() const override {
        return {reinterpret_cast<const int*>(REGISTERS.data()), REGISTERS.size()};
    }
    int pc() const override { return UC_X86_REG_RIP; }
    int frame_pointer() const override { return UC_X86_REG_RBP; }
    std::span<const int, 7> syscall_registers() const override {
        return std::span<const int, 7>(reinterpret_cast<const int*>(SYSCALL_REGISTERS.data()), 7);
    }
    int first_vector() const override { return UC_X86_REG_XMM0; }
    unsigned vectors() const override { return 16; }

    void set_stepping(uc_engine* engine, bool on) const override {
        uint64_t flags = read_register(engine, UC_X86_REG_RFLAGS) & ~RFLAGS_TF;
        write_register(engine, UC_X86_REG_RFLAGS, on ? flags | RFLAGS_TF : flags);
    }
    // TF stays set, but for POPF.
    void rearm_stepping(uc_engine* engine) const override { set_stepping(engine, true); }

    // Intel SDM vol. 2, SYSCALL: RCX gets the return address and R11 the flags.
    void complete_syscall(uc_engine* engine) const override {
        write_register(engine, UC_X86_REG_RCX, read_register(engine, UC_X86_REG_RIP));
        write_register(engine, UC_X86_REG_R11, read_register(engine, UC_X86_REG_RFLAGS) & ~RFLAGS_TF);
    }

    std::vector<Op> decode(uint64_t address, std::span<const uint8_t> bytes) override {
        std::vector<Op> ops;
        size_t at = 0;
        while (at < bytes.size()) {
            std::span<const uint8_t> rest = bytes.subspan(at);
            Op op = decode_one(address + at, rest);
            op.offset = static_cast<uint16_t>(at);
            ops.push_back(op);
            at += op.length;
        }
        return ops;
    }

    uint64_t faulting_operand(uc_engine* engine, const AddressSpace& space, uint64_t pc, std::span<const uint8_t> bytes,
                              uint64_t page) override;
    bool raises_stack_fault(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes, uint64_t address) override;
    bool undo_branch(uc_engine* engine, const AddressSpace& space, uint64_t pc, uint64_t target) override;

  private:
    Op decode_one(uint64_t address, std::span<const uint8_t> bytes);
    bool vector(const cs_insn& insn) const;
    ProbeMask branch_probes(const cs_insn& insn) const;
    ProbeMask memory_probes(const cs_insn& insn) const;
    ProbeMask operation_probes(const cs_insn& insn) const;

    Disassembler disassembler_{CS_ARCH_X86, CS_MODE_64};
};

bool X8664::vector(const cs_insn& insn) const {
    static constexpr unsigned GENERAL[] = {X86_INS_CRC32, X86_INS_POPCNT, X86_INS_MOVNTI};  // SSE by name only
    if (among(GENERAL, insn.id)) return false;
    for (uint8_t group : {X86_GRP_MMX, X86_GRP_SSE1, X86_GRP_SSE2, X86_GRP_SSE3, X86_GRP_SSSE3, X86_GRP_SSE41,
                          X86_GRP_SSE42, X86_GRP_AES, X86_GRP_PCLMUL})
        if (disassembler_.in_group(group)) return true;
    return false;
}

ProbeMask X8664::branch_probes(const cs_insn& insn) const {
    constexpr ProbeMask TRANSFER = mask(Probe::BR_RETIRED, Probe::BR_TAKEN);
    bool immediate = insn.detail->x86.op_count == 1 && insn.detail->x86.operands[0].type == X86_OP_IMM;
    ProbeMask target = bit(immediate ? Probe::BR_IMMED : Probe::BR_INDIRECT);
    switch (insn.id) {
        case X86_INS_JMP:
        case X86_INS_LJMP: return TRANSFER | target;
        case X86_INS_CALL:
        case X86_INS_LCALL: return TRANSFER | target | bit(Probe::BR_CALL);
        case X86_INS_RET:
        case X86_INS_RETF:
        case X86_INS_RETFQ: return TRANSFER | bit(Probe::BR_RETURN);
        case X86_INS_SYSCALL:
        case X86_INS_SYSENTER:
        case X86_INS_INT:
        case X86_INS_INT1:
        case X86_INS_INT3:
        case X86_INS_IRET:
        case X86_INS_IRETD:
        case X86_INS_IRETQ: return TRANSFER;
        default: break;
    }
    bool conditional = disassembler_.in_group(X86_GRP_JUMP) || insn.id == X86_INS_LOOP || insn.id == X86_INS_LOOPE ||
                       insn.id == X86_INS_LOOPNE;
    return conditional ? mask(Probe::BR_RETIRED, Probe::BR_COND, Probe::BR_IMMED) : 0;
}

ProbeMask X8664::memory_probes(const cs_insn& insn) const {
    const cs_x86& detail = insn.detail->x86;
    ProbeMask operands = 0;
    bool has_memory_operand = false;
    for (unsigned i = 0; i < detail.op_count; i++) {
        if (detail.operands[i].type != X86_OP_MEM) continue;
        has_memory_operand = true;
        if (detail.operands[i].access & CS_AC_READ) operands |= bit(Probe::LOAD);
        if (detail.operands[i].access & CS_AC_WRITE) operands |= bit(Probe::STORE);
    }
    switch (insn.id) {
        case X86_INS_CALL:
        case X86_INS_PUSH: return bit(Probe::STORE) | (has_memory_operand ? bit(Probe::LOAD) : 0);
        case X86_INS_POP: return bit(Probe::LOAD) | (has_memory_operand ? bit(Probe::STORE) : 0);
        case X86_INS_JMP: return has_memory_operand ? bit(Probe::LOAD) : 0;
        case X86_INS_MOVSD:  // the string instruction has two memory operands, the SSE2 one at most one
            if (detail.op_count == 2 && detail.operands[0].type == X86_OP_MEM && detail.operands[1].type == X86_OP_MEM)
                return READ_MODIFY_WRITE;
            break;
        case X86_INS_CMPSD: return has_memory_operand ? bit(Probe::LOAD) : 0;
        default: break;
    }
    bool accesses = has_memory_operand || among(IMPLIED, insn.id);
    if (among(NO_ACCESS, insn.id)) return 0;
    if (among(LOADS, insn.id)) return accesses ? bit(Probe::LOAD) : 0;
    if (among(STORES, insn.id)) return accesses ? bit(Probe::STORE) : 0;
    if (among(READ_MODIFY_WRITES, insn.id)) return accesses ? READ_MODIFY_WRITE : 0;
    // No vector instruction reads and writes the same memory operand; capstone has some the wrong way round.
    if (has_memory_operand && vector(insn))
        return bit(detail.operands[0].type == X86_OP_MEM ? Probe::STORE : Probe::LOAD);
    if (has_memory_operand && !operands) return bit(Probe::LOAD);  // capstone leaves some x87 loads unmarked
    return operands;
}

ProbeMask X8664::operation_probes(const cs_insn& insn) const {
    switch (insn.id) {
        case X86_INS_MFENCE:
        case X86_INS_LFENCE:
        case X86_INS_SFENCE: return bit(Probe::DSB);
        case X86_INS_DIV:
        case X86_INS_IDIV: return mask(Probe::INT_OP, Probe::DIV_OP);
        case X86_INS_MUL:
        case X86_INS_IMUL:
        case X86_INS_MULX: return mask(Probe::INT_OP, Probe::MUL_OP);
        default: break;
    }
    const Disassembler& in = disassembler_;
    if (in.in_group(X86_GRP_AES) || in.in_group(X86_GRP_PCLMUL) || in.in_group(X86_GRP_SHA))
        return bit(Probe::CRYPTO_OP);
    if (in.in_group(X86_GRP_FPU)) return bit(Probe::FP_OP);
    return vector(insn) ? bit(Probe::SIMD_OP) : 0;
}

Op X8664::decode_one(uint64_t address, std::span<const uint8_t> bytes) {
    constexpr ProbeMask RETIRED = mask(Probe::INST_RETIRED, Probe::CYCLES);
    const cs_insn* insn = disassembler_.decode(address, bytes);
    if (!insn)
        return Op{.probes = RETIRED,
                  .length = static_cast<uint8_t>(std::min<size_t>(bytes.size(), 255)),
                  .trap = Trap::UNDEFINED};

    Op op{.probes = RETIRED | branch_probes(*insn), .length = static_cast<uint8_t>(insn->size)};
    op.conditional = op.probes & bit(Probe::BR_COND);
    if (among(PREFETCHES, insn->id)) op.probes |= bit(Probe::SOFTWARE_PREFETCH);
    for (const TrapRow& row : TRAPS)
        if (row.id == insn->id) op.trap = row.trap;
    if (among(PRIVILEGED, insn->id)) op.trap = Trap::PRIVILEGED;
    // The gates of other vectors are the kernel's own, or there are none: a general protection fault.
    if (insn->id == X86_INS_INT && insn->detail->x86.operands[0].imm != BREAKPOINT_VECTOR) op.trap = Trap::PRIVILEGED;
    if (insn->id == X86_INS_MOV && disassembler_.in_group(X86_GRP_PRIVILEGE) && !of_segment(*insn))  // CRn, DRn
        op.trap = no_control_register(*insn) ? Trap::UNDEFINED : Trap::PRIVILEGED;
    if (vector_extension_encoded(bytes) && !among(VEX_EXECUTED, insn->id)) op.trap = Trap::UNDEFINED;
    if (prefixed(*insn, bytes, {X86_PREFIX_LOCK}) && !lockable(*insn)) op.trap = Trap::UNDEFINED;

    ProbeMask memory = memory_probes(*insn);
    const cs_x86& detail = insn->detail->x86;
    bool string = among(STRINGS, insn->id) && !disassembler_.in_group(X86_GRP_SSE2);
    if (string && prefixed(*insn, bytes, {X86_PREFIX_REP, X86_PREFIX_REPNE})) {
        op.repeated = true;
        op.iteration_probes = memory;
        op.repeat_may_end_early = among(COMPARING_STRINGS, insn->id);
        op.address_32 = detail.addr_size == 4;
        return op;
    }
    op.probes |= memory;
    static constexpr unsigned READ_HERE_WRITE_THERE[] = {X86_INS_CALL, X86_INS_PUSH, X86_INS_POP};
    op.updates_memory = memory == READ_MODIFY_WRITE && !string && !among(READ_HERE_WRITE_THERE, insn->id);
    if (ProbeMask operation = operation_probes(*insn)) {
        op.probes |= operation;
    } else if (!(op.probes & bit(Probe::BR_RETIRED))) {
        op.probes |= bit(Probe::INT_OP);
    }
    bool exchanges = insn->id == X86_INS_XCHG && memory;
    if (detail.prefix[0] == X86_PREFIX_LOCK || exchanges) op.probes |= bit(Probe::LOCKED);
    op.pushes_flags = insn->id == X86_INS_PUSHFQ || insn->id == X86_INS_PUSHF;
    return op;
}

// Capstone numbers registers by name; the engine's register of the same name, whole.
int engine_register(x86_reg reg) {
    static constexpr struct {
        x86_reg capstone;
        int engine;
    } SAME[] = {
        {X86_REG_RAX, UC_X86_REG_RAX}, {X86_REG_RBX, UC_X86_REG_RBX}, {X86_REG_RCX, UC_X86_REG_RCX},
        {X86_REG_RDX, UC_X86_REG_RDX}, {X86_REG_RSI, UC_X86_REG_RSI}, {X86_REG_RDI, UC_X86_REG_RDI},
        {X86_REG_RBP, UC_X86_REG_RBP}, {X86_REG_RSP, UC_X86_REG_RSP}, {X86_REG_R8, UC_X86_REG_R8},
        {X86_REG_R9, UC_X86_REG_R9},   {X86_REG_R10, UC_X86_REG_R10}, {X86_REG_R11, UC_X86_REG_R11},
        {X86_REG_R12, UC_X86_REG_R12}, {X86_REG_R13, UC_X86_REG_R13}, {X86_REG_R14, UC_X86_REG_R14},
        {X86_REG_R15, UC_X86_REG_R15}, {X86_REG_EAX, UC_X86_REG_EAX}, {X86_REG_EBX, UC_X86_REG_EBX},
        {X86_REG_ECX, UC_X86_REG_ECX}, {X86_REG_EDX, UC_X86_REG_EDX}, {X86_REG_ESI, UC_X86_REG_ESI},
        {X86_REG_EDI, UC_X86_REG_EDI}, {X86_REG_EBP, UC_X86_REG_EBP}, {X86_REG_ESP, UC_X86_REG_ESP},
    };
    for (const auto& pair : SAME)
        if (pair.capstone == reg) return pair.engine;
    return UC_X86_REG_INVALID;
}

// A bit test of memory goes as far as its register says, by whole operands: BT, BTS, BTR, BTC. Zero for all others.
uint64_t bit_test_offset(uc_engine* engine, std::span<const uint8_t> bytes) {
    static constexpr int BY_NUMBER[] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX,
                                        UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
                                        UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
                                        UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};
    const std::optional<Encoding> encoding = decode_encoding(bytes);
    const bool tests = encoding && encoding->map == Encoding::MAP_0F && (encoding->opcode & 0xe7) == 0xa3;
    if (!tests || !encoding->in_memory()) return 0;
    const unsigned bits = encoding->wide ? 64 : encoding->operand_16 ? 16 : 32;
    const uint64_t index = read_register(engine, BY_NUMBER[encoding->reg]) << (64 - bits);
    const int64_t whole = static_cast<int64_t>(index) >> (64 - bits) >> std::countr_zero(bits);
    return static_cast<uint64_t>(whole) * (bits / 8);
}

bool is_canonical(uint64_t address) {
    constexpr int BITS = 48;
    const auto sign = static_cast<int64_t>(address) >> (BITS - 1);
    return sign == 0 || sign == -1;
}

// Of a memory operand, as the registers are.
uint64_t address_of(uc_engine* engine, const x86_op_mem& mem, uint64_t next) {
    auto value = [&](x86_reg reg) -> uint64_t {
        if (reg == X86_REG_RIP) return next;
        int number = engine_register(reg);
        return number == UC_X86_REG_INVALID ? 0 : read_register(engine, number);
    };
    uint64_t address =
        static_cast<uint64_t>(mem.disp) + value(mem.base) + value(mem.index) * static_cast<uint64_t>(mem.scale);
    if (mem.segment == X86_REG_FS) address += read_register(engine, UC_X86_REG_FS_BASE);
    if (mem.segment == X86_REG_GS) address += read_register(engine, UC_X86_REG_GS_BASE);
    return address;
}

bool X8664::undo_branch(uc_engine* engine, const AddressSpace& space, uint64_t pc, uint64_t target) {
    constexpr uint64_t SLOT = 8;  // of the stack
    if (is_canonical(target)) return false;
    auto load = [&](uint64_t address) {
        std::array<uint8_t, SLOT> bytes{};
        space.read(address, bytes);
        return std::bit_cast<uint64_t>(bytes);
    };
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    const size_t size = space.read(pc, bytes);
    const cs_insn* insn = disassembler_.decode(pc, std::span(bytes).first(size));
    if (!insn) return false;
    const cs_x86& detail = insn->detail->x86;
    const bool calls = insn->id == X86_INS_CALL, returns = insn->id == X86_INS_RET;
    if (!calls && !returns && insn->id != X86_INS_JMP) return false;
    const uint64_t after = read_register(engine, UC_X86_REG_RSP);
    uint64_t before = after;
    if (calls) before += SLOT;
    if (returns) before -= SLOT + (detail.op_count ? static_cast<uint16_t>(detail.operands[0].imm) : 0u);
    write_register(engine, UC_X86_REG_RSP, before);
    uint64_t found = 0;
    if (calls)  // what it pushed may lie where the target was
        found = load(after) == pc + insn->size ? target : 0;
    else if (returns)
        found = load(before);
    else if (detail.operands[0].type == X86_OP_REG)
        found = read_register(engine, engine_register(static_cast<x86_reg>(detail.operands[0].reg)));
    else if (detail.operands[0].type == X86_OP_MEM)
        found = load(address_of(engine, detail.operands[0].mem, pc + insn->size));
    if (found != target) write_register(engine, UC_X86_REG_RSP, after);
    return found == target;
}

// The engine's own is right, but where its last byte's is none at all, and for 16 bytes: the second half of them is
// stored first.
uint64_t X8664::faulting_operand(uc_engine* engine, const AddressSpace& space, uint64_t pc,
                                 std::span<const uint8_t> bytes, uint64_t page) {
    constexpr uint64_t HALVES = 16;
    const uint64_t address = faulting_address();
    if ((address & ~PAGE_MASK) != page) return page;
    const cs_insn* insn = disassembler_.decode(pc, bytes);
    if (!insn) return address;
    for (const cs_x86_op& operand : std::span(insn->detail->x86.operands, insn->detail->x86.op_count)) {
        if (operand.type != X86_OP_MEM) continue;
        const uint64_t start = address_of(engine, operand.mem, pc + insn->size);
        const uint64_t last = start + operand.size - 1;
        if (start == address && !is_canonical(last)) return last;
        if (operand.size != HALVES || !vector(*insn)) continue;
        if (address - start >= HALVES) continue;
        if ((start & ~PAGE_MASK) == page) return start;
        const Page* first = space.lookup(start);
        return first && first->protection & (operand.access & CS_AC_WRITE ? WRITE : READ) ? page : start;
    }
    return address;
}

// Intel SDM vol. 1, "Canonical Addressing".
bool X8664::raises_stack_fault(uc_engine* engine, uint64_t pc, std::span<const uint8_t> bytes, uint64_t address) {
    static constexpr unsigned OF_STACK[] = {X86_INS_PUSH,  X86_INS_PUSHF, X86_INS_PUSHFQ, X86_INS_POP,   X86_INS_POPF,
                                            X86_INS_POPFQ, X86_INS_CALL,  X86_INS_RET,    X86_INS_ENTER, X86_INS_LEAVE};
    static constexpr unsigned STACK_BASES[] = {X86_REG_RSP, X86_REG_RBP, X86_REG_ESP, X86_REG_EBP};
    constexpr uint64_t LARGEST_ACCESS = 512;  // FXSAVE
    const cs_insn* insn = is_canonical(address) ? nullptr : disassembler_.decode(pc, bytes);
    if (!insn) return false;
    for (const cs_x86_op& operand : std::span(insn->detail->x86.operands, insn->detail->x86.op_count)) {
        if (operand.type != X86_OP_MEM) continue;
        const uint64_t start = address_of(engine, operand.mem, pc + insn->size) + bit_test_offset(engine, bytes);
        if (address - start >= LARGEST_ACCESS) continue;
        const bool other = operand.mem.segment == X86_REG_FS || operand.mem.segment == X86_REG_GS;
        return !other && among(STACK_BASES, operand.mem.base);
    }
    return among(OF_STACK, insn->id);
}

}  // namespace

std::unique_ptr<Isa> make_x86_64() { return std::make_unique<X8664>(); }

}  // namespace perfemu
