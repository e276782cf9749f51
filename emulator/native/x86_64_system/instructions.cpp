// Which instructions are the processor's own, and their operands.
#include <array>
#include <iterator>
#include <vector>

#include "x86_64_system/processor.hpp"

namespace perfemu::x86_64 {

// The rows: an instruction, what executes it, and whether the engine does it right at CPL 0.
struct SystemTable {
    struct Row {
        OpcodePattern pattern;
        void (Processor::*execute)();
        bool of_user_alone = false;
        bool of_legacy_alone = false;
    };

    static std::span<const Row> rows();

    std::array<std::vector<const Row*>, 2 * 256> by_opcode;

    SystemTable() {
        for (const Row& row : rows())
            for (unsigned opcode = row.pattern.first; opcode <= row.pattern.last; opcode++)
                by_opcode[index(row.pattern.map, opcode)].push_back(&row);
    }
    static size_t index(OpcodeMap map, unsigned opcode) { return (map == OpcodeMap::TWO_BYTE ? 256 : 0) + opcode; }
    static const Row* find(const Instruction& insn) {
        static const SystemTable table;
        if (insn.map > OpcodeMap::TWO_BYTE) return nullptr;
        const unsigned repeat = insn.repeat == 0xf3 ? REPEAT_F3 : insn.repeat ? REPEAT_F2 : NO_REPEAT;
        for (const Row* row : table.by_opcode[index(insn.map, insn.opcode)]) {
            const bool there = !row->of_legacy_alone || insn.mode != CodeMode::BITS_64;
            if (there && row->pattern.fits(insn, 1u << insn.variant() | repeat)) return row;
        }
        return nullptr;
    }
};

std::span<const SystemTable::Row> SystemTable::rows() {
    using P = Processor;
    static constexpr bool USER = true, LEGACY = true;
    static constexpr Row ROWS[] = {
        // segment registers
        {one(0x8c), &P::move_from_segment},
        {one(0x8e), &P::move_to_segment},
        {one(0x07), &P::pop_segment, false, LEGACY},
        {one(0x17), &P::pop_segment, false, LEGACY},
        {one(0x1f), &P::pop_segment, false, LEGACY},
        {two(0xa1), &P::pop_segment},
        {two(0xa9), &P::pop_segment},
        {two(0xb2).memory(), &P::load_far_pointer},
        {two(0xb4, 0xb5).memory(), &P::load_far_pointer},
        {one(0xc4).memory(), &P::load_far_pointer, false, LEGACY},
        {one(0xc5).memory(), &P::load_far_pointer, false, LEGACY},
        // transfers
        {one(0x9a), &P::call_far, false, LEGACY},
        {one(0xea), &P::jump_far, false, LEGACY},
        {(one(0xff) / 3).memory(), &P::call_far},
        {(one(0xff) / 5).memory(), &P::jump_far},
        {one(0xca, 0xcb), &P::return_far},
        {one(0xcc, 0xcd), &P::interrupt},
        {one(0xce), &P::interrupt, false, LEGACY},
        {one(0xcf), &P::return_from_interrupt},
        {one(0xf1), &P::interrupt},
        {two(0x05), &P::call_system},
        {two(0x07), &P::return_from_system},
        {two(0x34), &P::enter_system},
        {two(0x35), &P::exit_system},
        {one(0x62).memory(), &P::check_bounds, false, LEGACY},
        // ports
        {one(0x6c, 0x6f), &P::access_port},
        {one(0xe4, 0xe7), &P::access_port},
        {one(0xec, 0xef), &P::access_port},
        // flags
        {one(0x9d), &P::pop_flags},
        {one(0xf4), &P::halt},
        {one(0xfa), &P::clear_interrupts, USER},
        {one(0xfb), &P::set_interrupts},
        // tables and control registers
        {two(0x00) / 0, &P::store_selector},
        {two(0x00) / 1, &P::store_selector},
        {two(0x00) / 2, &P::load_local_table},
        {two(0x00) / 3, &P::load_task},
        {two(0x00) / 4, &P::verify},
        {two(0x00) / 5, &P::verify},
        {(two(0x01) / 0).memory(), &P::store_table},
        {(two(0x01) / 1).memory(), &P::store_table},
        {(two(0x01) / 2).memory(), &P::load_table},
        {(two(0x01) / 3).memory(), &P::load_table},
        {two(0x01) / 4, &P::store_status_word},
        {two(0x01) / 6, &P::load_status_word},
        {(two(0x01) / 7).memory(), &P::invalidate_page},
        {(two(0x01) / 7).exactly(0), &P::swap_gs},
        {(two(0x01) / 7).exactly(1), &P::read_time},
        {two(0x02, 0x03), &P::load_rights},
        {two(0x06), &P::clear_task_switched},
        {two(0x08, 0x09), &P::invalidate_caches},
        {two(0x20), &P::move_from_control},
        {two(0x21), &P::move_from_debug},
        {two(0x22), &P::move_to_control},
        {two(0x23), &P::move_to_debug},
        {two(0x30), &P::write_msr},
        {two(0x31), &P::read_time},
        {two(0x32), &P::read_msr},
        {two(0x33), &P::read_counter},
    };
    return ROWS;
}

Processor::Processor(uc_engine* engine, std::shared_ptr<PhysicalMemory> memory, GuestRam ram)
    : registers_(engine), memory_(std::move(memory), ram, state_) {
    reset();
}

void Processor::reset() {
    constexpr uint64_t FIRST = 0xfff0, SIGNATURE = 0x306c4;  // EDX: which processor it is
    const uint64_t time = state_.tsc_offset;
    const bool is_amd = state_.is_amd;
    state_ = State();
    state_.tsc_offset = time;
    state_.is_amd = is_amd;
    for (unsigned number = 0; number < 16; number++) registers_.general(number) = number == RDX ? SIGNATURE : 0;
    registers_.base(FS) = registers_.base(GS) = 0;
    registers_.set_flags(0);
    registers_.set_rip(FIRST);
    registers_.follow(state_);
}

void Processor::archive(Archive& state) {
    state(state_, taken_);
    if (state.is_loading()) resume();
}

bool Processor::executes(const Instruction& insn, Level level) const {
    const SystemTable::Row* row = SystemTable::find(insn);
    return row ? level == Level::USER || !row->of_user_alone : refusal(insn).has_value();
}

// SDM vol. 3, 2.5 and table 13-1.
std::optional<Vector> Processor::refusal(const Instruction& insn) const {
    constexpr uint64_t BY_CONTROL = cr0::EM | cr0::TS;
    if (!(state_.cr0 & BY_CONTROL) && state_.cr4 & cr4::OSFXSR) return std::nullopt;
    bool x87 = insn.row->has(effect::ON_X87), mmx = false, vectors = false;
    for (const OperandCode code : insn.row->operands) switch (code.method) {
            case AddressingMethod::VECTOR_RM:
            case AddressingMethod::VECTOR_REG: vectors = true; break;
            case AddressingMethod::MMX_RM:
            case AddressingMethod::MMX_REG: mmx = true; break;
            case AddressingMethod::LANES_RM:
            case AddressingMethod::LANES_REG: (insn.operand_16 ? vectors : mmx) = true; break;
            default: break;
        }
    const std::string_view name = insn.row->name;
    vectors |= name == "LDMXCSR" || name == "STMXCSR";
    mmx |= name == "EMMS";
    x87 |= name == "FXSAVE" || name == "FXRSTOR";
    if (name == "WAIT") {
        constexpr uint64_t WAITS = cr0::MP | cr0::TS;
        return (state_.cr0 & WAITS) == WAITS ? std::optional(Vector::NO_MATH) : std::nullopt;
    }
    const bool any = x87 || mmx || vectors;
    if (((mmx || vectors) && state_.cr0 & cr0::EM) || (vectors && !(state_.cr4 & cr4::OSFXSR)))
        return Vector::UNDEFINED;
    if (any && state_.cr0 & BY_CONTROL) return Vector::NO_MATH;
    return std::nullopt;
}

After Processor::execute(const Instruction& insn, uint64_t now) {
    insn_ = &insn;
    now_ = now;
    next_ = registers_.rip() + insn.length;
    if (insn.mode != CodeMode::BITS_64) next_ = static_cast<uint32_t>(next_);
    after_ = After::RETIRES;
    changes_ = 0;
    shadows_ = resumes_ = false;
    const SystemTable::Row* row = SystemTable::find(insn);
    if (!row) throw Fault{refusal(insn).value_or(Vector::UNDEFINED)};
    (this->*row->execute)();
    if (after_ == After::ASKS) return after_;
    registers_.follow(state_);
    registers_.set_rip(next_);
    return after_;
}

void Processor::ask(Trap what) {
    asks_ = what;
    after_ = After::ASKS;
}

// INT n, INT3, INT1, INTO
void Processor::interrupt() {
    constexpr uint8_t INT3 = 0xcc, INTO = 0xce, INT1 = 0xf1;
    auto vector = static_cast<Vector>(insn_->immediate);
    Cause cause = Cause::SOFTWARE;
    switch (insn_->opcode) {
        case INT3: vector = Vector::BREAKPOINT; break;
        case INTO:
            if (!(registers_.flags() & rflags::OF)) return;
            vector = Vector::OVERFLOW_TRAP;
            break;
        case INT1:
            vector = Vector::DEBUG;
            cause = Cause::TRAP;
            break;
        default: break;
    }
    const uint64_t at = registers_.rip();
    registers_.set_rip(next_);
    try {
        deliver({vector}, cause);
    } catch (const Fault&) {
        registers_.set_rip(at);
        throw;
    }
}

// BOUND
void Processor::check_bounds() {
    const unsigned size = insn_->operand_size();
    const auto extended = [&](uint64_t value) {
        return size == 2 ? int64_t{static_cast<int16_t>(value)} : int64_t{static_cast<int32_t>(value)};
    };
    const int64_t index = extended(general(insn_->reg(), size));
    if (index < extended(load_operand(size)) || index > extended(load_operand(size, size))) throw Fault{Vector::BOUND};
}

// --- operands ---

uint64_t Processor::general(unsigned number, unsigned bytes) const {
    const uint64_t value = registers_.general(number);
    return bytes == 8 ? value : value & ((uint64_t{1} << 8 * bytes) - 1);
}

void Processor::set_general(unsigned number, unsigned bytes, uint64_t value) {
    uint64_t& whole = registers_.general(number);
    if (bytes >= 4) {
        whole = bytes == 4 ? static_cast<uint32_t>(value) : value;
    } else {
        const uint64_t part = (uint64_t{1} << 8 * bytes) - 1;
        whole = (whole & ~part) | (value & part);
    }
}

uint64_t Processor::offset_of(const Operand& operand) const {
    uint64_t offset = 0;
    if (operand.method == AddressingMethod::OFFSET) {
        offset = insn_->immediate;
    } else if (operand.method == AddressingMethod::SOURCE) {
        offset = registers_.general(RSI);
    } else if (operand.method == AddressingMethod::DESTINATION) {
        offset = registers_.general(RDI);
    } else {
        offset = static_cast<uint64_t>(insn_->displacement);
        if (insn_->relative_to_ip()) offset += registers_.rip() + insn_->length;
        if (insn_->base() != Instruction::NO_REGISTER) offset += registers_.general(insn_->base());
        if (insn_->index() != Instruction::NO_REGISTER) offset += registers_.general(insn_->index()) << insn_->shift();
    }
    if (insn_->address_16) return offset & 0xffff;
    return insn_->address_32 ? static_cast<uint32_t>(offset) : offset;
}

unsigned Processor::segment_of(const Operand& operand) const {
    if (operand.method == AddressingMethod::DESTINATION) return ES;
    const uint8_t chosen = insn_->segment_override;
    if (chosen != Instruction::NO_OVERRIDE && (!in_64() || chosen >= FS)) return chosen;
    const bool by_modrm = operand.method != AddressingMethod::OFFSET && !operand.is_string();
    return by_modrm && (insn_->base() == RSP || insn_->base() == RBP) ? SS : DS;
}

uint64_t Processor::linear(unsigned segment, uint64_t offset, unsigned bytes) const {
    const Vector vector = segment == SS ? Vector::STACK : Vector::PROTECTION;
    if (in_64()) {
        const uint64_t address = offset + (segment >= FS ? registers_.base(segment) : 0);
        if (!is_canonical(address) || !is_canonical(address + bytes - 1)) raise(vector, 0);
        return address;
    }
    const SegmentRegister& where = state_.segments[segment];
    if (where.has(attribute::UNUSABLE)) raise(vector, 0);
    const bool down = !where.is_code() && where.has(attribute::EXPANDS_DOWN) && state_.is_protected();
    if (!down && offset + bytes - 1 > where.limit) raise(vector, 0);
    return static_cast<uint32_t>(where.base + offset);
}

uint64_t Processor::linear_address(const Operand& operand) const {
    const unsigned segment = segment_of(operand);
    const uint64_t offset = offset_of(operand);
    if (in_64()) return offset + (segment >= FS ? registers_.base(segment) : 0);
    return static_cast<uint32_t>(offset + state_.segments[segment].base);
}

// Of the operand in memory, from the byte `at` on.
uint64_t Processor::load_operand(unsigned bytes, uint64_t at) {
    const Operand operand{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::RM};
    return memory_.load(linear(segment_of(operand), offset_of(operand) + at, bytes), bytes, level());
}

void Processor::store_operand(unsigned bytes, uint64_t value, uint64_t at) {
    const Operand operand{.kind = Operand::Kind::MEMORY, .method = AddressingMethod::RM};
    memory_.store(linear(segment_of(operand), offset_of(operand) + at, bytes), bytes, value, level());
}

}  // namespace perfemu::x86_64
