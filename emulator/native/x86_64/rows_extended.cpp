// General instructions of the opcode maps behind 0F, and behind VEX. Intel SDM volume 2, and tables.
#include "x86_64/dataflow.hpp"
#include "x86_64/operand_codes.hpp"

namespace perfemu::x86_64 {
namespace {

using namespace codes;
using namespace effect;
using enum OpClass;
using enum Form;
using Flow = InstructionDataflow;

constexpr uint64_t EXCHANGES_PAIR = FLAGS_OUT | RAX_IN | RAX_OUT | RDX_IN | RDX_OUT | RCX_IN | RBX_IN;
constexpr uint64_t TIME_STAMP = RAX_OUT | RDX_OUT | MICROCODED;
constexpr uint64_t IDENTIFIES = RAX_IN | RCX_IN | RAX_OUT | RDX_OUT | RCX_OUT | SERIALIZES | MICROCODED;
constexpr uint64_t CALLS_KERNEL = RAX_IN | RAX_OUT | RCX_OUT | SERIALIZES | MICROCODED | TRANSFERS;

// Nothing is left: the machine answers it, or it ends the block.
constexpr Row trapping(OpcodePattern pattern, std::string_view name, Trap trap, uint64_t effects = 0) {
    return {pattern, name, {}, SYSTEM, IMPLICIT, effects, &Flow::nothing_left, trap};
}

constexpr Row ROWS[] = {
    {two(0x40, 0x4f), "CMOVcc", {Gv, Ev}, SELECT, UPDATE, BY_CONDITION, &Flow::conditional_move},
    {two(0x80, 0x8f), "Jcc", {Jz}, BRANCH, IMPLICIT, BY_CONDITION},
    {two(0x90, 0x9f), "SETcc", {Eb}, SELECT, WRITE, BY_CONDITION, &Flow::set_condition},
    // moves
    {two(0xb6), "MOVZX", {Gv, Eb}, ALU, WRITE, PLAIN, &Flow::extend},
    {two(0xb7), "MOVZX", {Gv, Ew}, ALU, WRITE, PLAIN, &Flow::extend},
    {two(0xbe), "MOVSX", {Gv, Eb}, ALU, WRITE, PLAIN, &Flow::extend_signed},
    {two(0xbf), "MOVSX", {Gv, Ew}, ALU, WRITE, PLAIN, &Flow::extend_signed},
    {three_38(0xf0).with(NO_REPEAT | REPEAT_F3).memory(),
     "MOVBE",
     {Gv, Ev},
     BYTE_REVERSE,
     WRITE,
     0,
     &Flow::reverse_bytes},
    {three_38(0xf1).with(NO_REPEAT | REPEAT_F3).memory(), "MOVBE", {Ev, Gv}, BYTE_REVERSE, WRITE},
    {two(0xc3).with(NO_REPEAT).memory(), "MOVNTI", {Ey, Gy}, NONE, WRITE, 0, &Flow::move},
    {two(0xa0), "PUSH", {Sw}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {two(0xa8), "PUSH", {Sw}, NONE, READ, STORES | STACK, &Flow::push_operand},
    {two(0xa1), "POP", {Sw}, NONE, WRITE, LOADS | STACK, &Flow::pop_operand},
    {two(0xa9), "POP", {Sw}, NONE, WRITE, LOADS | STACK, &Flow::pop_operand},
    {two(0xb2).memory(), "LSS", {Gv, Mpointer}, SYSTEM, WRITE, 0, &Flow::far_pointer},
    {two(0xb4, 0xb5).memory(), "LFS", {Gv, Mpointer}, SYSTEM, WRITE, 0, &Flow::far_pointer},  // LGS
    // arithmetic and logic
    {two(0xaf), "IMUL", {Gv, Ev}, MUL32, UPDATE, STATUS | BY_WIDTH, &Flow::multiply},
    {two(0xc0, 0xc1), "XADD", {Eo, Go}, ALU, UPDATE_2, STATUS | LOCKABLE, &Flow::exchange_and_add},
    {two(0xb0, 0xb1), "CMPXCHG", {Eo, Go}, ALU, UPDATE, STATUS | RAX_IN | RAX_OUT | LOCKABLE},
    {(two(0xc7) / 1).memory(),
     "CMPXCHG8B",
     {Mpair},
     ATOMIC,
     UPDATE,
     EXCHANGES_PAIR | MICROCODED | LOCKABLE,
     &Flow::compare_pair},
    {three_38(0xf6).with(P66), "ADCX", {Gy, Ey}, ALU_CARRY, UPDATE, CARRY_OUT | CARRY_IN},
    {three_38(0xf6).with(PF3), "ADOX", {Gy, Ey}, ALU_CARRY, UPDATE, FLAGS_OUT | FLAGS_IN},
    {vex_38(0xf2).with(NP), "ANDN", {Gy, By, Ey}, ALU, WRITE, STATUS, &Flow::and_not},
    {vex_38(0xf3).with(NP) / 1, "BLSR", {By, Ey}, BIT_LOWEST, WRITE, STATUS, &Flow::lowest_bit},
    {vex_38(0xf3).with(NP) / 2, "BLSMSK", {By, Ey}, BIT_LOWEST, WRITE, STATUS, &Flow::lowest_bit},
    {vex_38(0xf3).with(NP) / 3, "BLSI", {By, Ey}, BIT_LOWEST, WRITE, STATUS, &Flow::lowest_bit},
    {vex_38(0xf6).with(PF2), "MULX", {Gy, By, Ey}, MUL_HIGH, WRITE_2, RDX_IN, &Flow::multiply_x},
    // shifts and bits
    {two(0xa4), "SHLD", {Ev, Gv, Ib}, SHIFT_DOUBLE, UPDATE, STATUS, &Flow::double_shift},
    {two(0xa5), "SHLD", {Ev, Gv, Cb}, SHIFT_DOUBLE, UPDATE, STATUS, &Flow::double_shift},
    {two(0xac), "SHRD", {Ev, Gv, Ib}, SHIFT_DOUBLE, UPDATE, STATUS, &Flow::double_shift},
    {two(0xad), "SHRD", {Ev, Gv, Cb}, SHIFT_DOUBLE, UPDATE, STATUS, &Flow::double_shift},
    {two(0xa3), "BT", {Ev, Gv}, BIT_TEST, READ, CARRY_OUT, &Flow::bit_test},
    {two(0xab), "BTS", {Ev, Gv}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    {two(0xb3), "BTR", {Ev, Gv}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    {two(0xbb), "BTC", {Ev, Gv}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    {two(0xba) / 4, "BT", {Ev, Ib}, BIT_TEST, READ, CARRY_OUT, &Flow::bit_test},
    {two(0xba) / 5, "BTS", {Ev, Ib}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    {two(0xba) / 6, "BTR", {Ev, Ib}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    {two(0xba) / 7, "BTC", {Ev, Ib}, BIT_TEST, UPDATE, CARRY_OUT | LOCKABLE, &Flow::bit_test},
    // zero leaves the destination as it was
    {two(0xbc).with(NO_REPEAT | REPEAT_F2), "BSF", {Gv, Ev}, BIT_SCAN, UPDATE, FLAGS_OUT, &Flow::scan},
    {two(0xbd).with(NO_REPEAT | REPEAT_F2), "BSR", {Gv, Ev}, BIT_SCAN, UPDATE, FLAGS_OUT, &Flow::scan},
    {two(0xbc).with(REPEAT_F3), "TZCNT", {Gv, Ev}, BIT_COUNT, WRITE, STATUS, &Flow::scan},
    {two(0xbd).with(REPEAT_F3), "LZCNT", {Gv, Ev}, BIT_COUNT, WRITE, STATUS, &Flow::scan},
    {two(0xb8).with(REPEAT_F3), "POPCNT", {Gv, Ev}, BIT_COUNT, WRITE, STATUS},
    {two(0xc8, 0xcf), "BSWAP", {Zv}, BYTE_REVERSE, UPDATE, 0, &Flow::reverse_bytes},
    {three_38(0xf0).with(REPEAT_F2), "CRC32", {Gy, Eb}, CRC, UPDATE},
    {three_38(0xf1).with(REPEAT_F2), "CRC32", {Gy, Ev}, CRC, UPDATE},
    {vex_3a(0xf0).with(PF2), "RORX", {Gy, Ey, Ib}, ROTATE, WRITE, 0, &Flow::rotate_x},
    {vex_38(0xf7).with(NP), "BEXTR", {Gy, Ey, By}, BITFIELD, WRITE, STATUS},
    {vex_38(0xf7).with(P66), "SHLX", {Gy, Ey, By}, SHIFT_VARIABLE, WRITE, 0, &Flow::shift_x},
    {vex_38(0xf7).with(PF3), "SARX", {Gy, Ey, By}, SHIFT_VARIABLE, WRITE, 0, &Flow::shift_x},
    {vex_38(0xf7).with(PF2), "SHRX", {Gy, Ey, By}, SHIFT_VARIABLE, WRITE, 0, &Flow::shift_x},
    {vex_38(0xf5).with(NP), "BZHI", {Gy, Ey, By}, BIT_LOWEST, WRITE, STATUS},
    {vex_38(0xf5).with(PF3), "PEXT", {Gy, By, Ey}, PARALLEL_BITS, WRITE},
    {vex_38(0xf5).with(PF2), "PDEP", {Gy, By, Ey}, PARALLEL_BITS, WRITE},
    // nothing, hints, fences
    {(two(0x0d) / 0).memory(), "PREFETCH", {Mb}, NONE, IMPLICIT, PREFETCHES},
    {(two(0x0d) / 1).memory(), "PREFETCHW", {Mb}, NONE, IMPLICIT, PREFETCHES},
    {(two(0x0d) / 2).memory(), "PREFETCHWT1", {Mb}, NONE, IMPLICIT, PREFETCHES},
    {(two(0x18) / 0).memory(), "PREFETCHNTA", {Mb}, NONE, IMPLICIT, PREFETCHES | ON_VECTORS},
    {(two(0x18) / 1).memory(), "PREFETCHT0", {Mb}, NONE, IMPLICIT, PREFETCHES | ON_VECTORS},
    {(two(0x18) / 2).memory(), "PREFETCHT1", {Mb}, NONE, IMPLICIT, PREFETCHES | ON_VECTORS},
    {(two(0x18) / 3).memory(), "PREFETCHT2", {Mb}, NONE, IMPLICIT, PREFETCHES | ON_VECTORS},
    {two(0x18) / 4, "NOP", {Ez}, NOP, IMPLICIT},
    {two(0x18) / 5, "NOP", {Ez}, NOP, IMPLICIT},
    {two(0x18) / 6, "NOP", {Ez}, NOP, IMPLICIT},
    {two(0x18) / 7, "NOP", {Ez}, NOP, IMPLICIT},
    {(two(0x1e) / 1).registers().with(REPEAT_F3), "RDSSP", {Ey}, SYSTEM, IMPLICIT},
    {(two(0x1e) / 7).registers().with(REPEAT_F3), "ENDBR64", {}, NOP, IMPLICIT},
    {two(0x19, 0x1e), "NOP", {Ez}, NOP, IMPLICIT},  // also what others read as MPX's, CET's and CLDEMOTE
    {two(0x1f), "NOP", {Ev}, NOP, IMPLICIT},
    {(two(0xae) / 5).registers().with(NO_REPEAT | REPEAT_F2), "LFENCE", {}, BARRIER, IMPLICIT, SERIALIZES | ON_VECTORS},
    {(two(0xae) / 6).registers().with(NP), "MFENCE", {}, BARRIER, IMPLICIT, SERIALIZES | ON_VECTORS},
    {(two(0xae) / 7).registers(), "SFENCE", {}, BARRIER, IMPLICIT, ON_VECTORS},
    {(two(0xae) / 6).memory().with(P66), "CLWB", {Mb}, SYSTEM, IMPLICIT},
    {(two(0xae) / 7).memory().with(P66), "CLFLUSHOPT", {Mb}, SYSTEM, IMPLICIT},
    {(two(0xae) / 7).memory(), "CLFLUSH", {Mb}, SYSTEM, IMPLICIT, ON_VECTORS},
    // state
    {(two(0xae) / 0).memory(), "FXSAVE", {Mfxsave}, X87_SPECIAL, WRITE, X87 | CONTROL_IN | MICROCODED},
    {(two(0xae) / 1).memory(), "FXRSTOR", {Mfxsave}, X87_SPECIAL, READ, X87 | CONTROL_OUT | MICROCODED},
    {(two(0xae) / 2).memory(), "LDMXCSR", {Ed}, X87_CONTROL, READ, CONTROL_OUT | ON_VECTORS},
    {(two(0xae) / 3).memory(), "STMXCSR", {Ed}, X87_CONTROL, WRITE, CONTROL_IN | ON_VECTORS},
    {two(0x77).with(NP), "EMMS", {}, X87_SPECIAL, IMPLICIT, X87 | MICROCODED | ON_VECTORS},
    {(two(0xae) / 0).registers().with(REPEAT_F3), "RDFSBASE", {Ey}, SYSTEM, WRITE, 0, &Flow::segment_base},
    {(two(0xae) / 1).registers().with(REPEAT_F3), "RDGSBASE", {Ey}, SYSTEM, WRITE, 0, &Flow::segment_base},
    {(two(0xae) / 2).registers().with(REPEAT_F3), "WRFSBASE", {Ey}, SYSTEM, READ, 0, &Flow::segment_base},
    {(two(0xae) / 3).registers().with(REPEAT_F3), "WRGSBASE", {Ey}, SYSTEM, READ, 0, &Flow::segment_base},
    // the system's
    {two(0x05), "SYSCALL", {}, SYSTEM, IMPLICIT, CALLS_KERNEL, &Flow::nothing_left},
    {two(0xa2), "CPUID", {}, SERIALIZE, IMPLICIT, IDENTIFIES, &Flow::nothing_left, Trap::CPUID},
    trapping(two(0x31), "RDTSC", Trap::RDTSC, TIME_STAMP),
    trapping((two(0x01) / 7).exactly(1), "RDTSCP", Trap::RDTSCP, TIME_STAMP | RCX_OUT),
    trapping(two(0x33), "RDPMC", Trap::RDPMC, TIME_STAMP | RCX_IN),
    trapping((two(0x01) / 2).exactly(0), "XGETBV", Trap::XGETBV, TIME_STAMP | RCX_IN),
    {two(0x00) / 0, "SLDT", {Em}, SYSTEM, WRITE, 0, &Flow::move_segment},
    {two(0x00) / 1, "STR", {Em}, SYSTEM, WRITE, 0, &Flow::move_segment},
    {two(0x00) / 4, "VERR", {Ew}, SYSTEM, READ, STATUS},
    {two(0x00) / 5, "VERW", {Ew}, SYSTEM, READ, STATUS},
    {two(0x02), "LAR", {Gv, Ew}, SYSTEM, WRITE, STATUS},
    {two(0x03), "LSL", {Gv, Ew}, SYSTEM, WRITE, STATUS},
    {(two(0x01) / 0).memory(), "SGDT", {Mtable}, SYSTEM, WRITE},
    {(two(0x01) / 1).memory(), "SIDT", {Mtable}, SYSTEM, WRITE},
    {two(0x01) / 4, "SMSW", {Em}, SYSTEM, WRITE},
    {two(0x0b), "UD2", {}},
    // what the engine would execute although user mode may not
    trapping(two(0x00) / 2, "LLDT", Trap::PRIVILEGED),
    trapping(two(0x00) / 3, "LTR", Trap::PRIVILEGED),
    trapping((two(0x01) / 2).memory(), "LGDT", Trap::PRIVILEGED),
    trapping((two(0x01) / 3).memory(), "LIDT", Trap::PRIVILEGED),
    trapping(two(0x01) / 6, "LMSW", Trap::PRIVILEGED),
    trapping((two(0x01) / 7).memory(), "INVLPG", Trap::PRIVILEGED),
    trapping((two(0x01) / 7).exactly(0), "SWAPGS", Trap::PRIVILEGED),
    trapping(two(0x06), "CLTS", Trap::PRIVILEGED),
    trapping(two(0x07), "SYSRET", Trap::PRIVILEGED),
    trapping(two(0x08), "INVD", Trap::PRIVILEGED),
    trapping(two(0x09), "WBINVD", Trap::PRIVILEGED),
    {two(0x20), "MOV", {Eq, Cq}, SYSTEM, WRITE, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {two(0x21), "MOV", {Eq, Cq}, SYSTEM, WRITE, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {two(0x22), "MOV", {Cq, Eq}, SYSTEM, WRITE, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    {two(0x23), "MOV", {Cq, Eq}, SYSTEM, WRITE, 0, &Flow::nothing_left, Trap::PRIVILEGED},
    trapping(two(0x30), "WRMSR", Trap::PRIVILEGED),
    trapping(two(0x32), "RDMSR", Trap::PRIVILEGED),
    trapping(two(0x35), "SYSEXIT", Trap::PRIVILEGED),
    {two(0x34), "SYSENTER", {}, SYSTEM, IMPLICIT, CALLS_KERNEL, &Flow::nothing_left, Trap::UNDEFINED},  // to programs
    {(two(0xae) / 4).with(PF3), "PTWRITE", {Ey}, SYSTEM, READ, WRITES_TRACE},
    // Of extensions that CPUID does not offer: slices tell of their accesses, should they become ones that it does.
    {(two(0xae) / 4).memory(), "XSAVE", {Mfxsave}, SYSTEM, WRITE, 0, &Flow::xsave, Trap::UNDEFINED},
    {(two(0xae) / 5).memory(), "XRSTOR", {Mfxsave}, SYSTEM, READ, 0, &Flow::xrstor, Trap::UNDEFINED},
    {(two(0xae) / 6).memory(), "XSAVEOPT", {Mfxsave}, SYSTEM, WRITE, 0, &Flow::xsave, Trap::UNDEFINED},
};

}  // namespace

std::vector<Row> extended_rows() { return {std::begin(ROWS), std::end(ROWS)}; }

}  // namespace perfemu::x86_64
