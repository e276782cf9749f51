// A slice as a function of the host's own.
#include <cstddef>
#include <optional>
#include <utility>

#include "address/addresses.hpp"

namespace perfemu {

using slice::Operation;
using slice::Width;

namespace {

using Host = HostAssembler;
constexpr Host::Register REGISTERS = Host::RDI, FOUND = Host::RSI, RESULTS = Host::RDX;  // the System V ABI's arguments
constexpr unsigned WORD_BYTES = sizeof(uint64_t);

bool is_near(uint64_t displacement) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(displacement)}) == displacement;
}

// As slices without sites would be, whose number is large: the host foresees where one function is better than many.
uint64_t* find_nothing(const uint64_t*, uint64_t* found, uint64_t*) { return found; }

// What holds for the host's flags where `condition` holds for A64's; none where no single one does.
std::optional<Host::Condition> on_host(slice::Condition condition, Operation flags_of) {
    using slice::Condition;
    const bool subtraction = flags_of == Operation::CONDITION_SUBTRACT;  // A64's carry says that nothing was borrowed
    switch (condition) {
        case Condition::EQUAL: return Host::EQUAL;
        case Condition::NOT_EQUAL: return Host::NOT_EQUAL;
        case Condition::CARRY_SET: return subtraction ? Host::ABOVE_OR_EQUAL : Host::BELOW;
        case Condition::CARRY_CLEAR: return subtraction ? Host::BELOW : Host::ABOVE_OR_EQUAL;
        case Condition::MINUS: return Host::MINUS;
        case Condition::PLUS: return Host::PLUS;
        case Condition::OVERFLOW_SET: return Host::OVERFLOW_SET;
        case Condition::OVERFLOW_CLEAR: return Host::OVERFLOW_CLEAR;
        case Condition::GREATER_OR_EQUAL: return Host::GREATER_OR_EQUAL;
        case Condition::LESS: return Host::LESS;
        case Condition::GREATER: return Host::GREATER;
        case Condition::LESS_OR_EQUAL: return Host::LESS_OR_EQUAL;
        case Condition::HIGHER:
            if (subtraction) return Host::ABOVE;
            break;
        case Condition::LOWER_OR_SAME:
            if (subtraction) return Host::BELOW_OR_EQUAL;
            break;
        case Condition::ALWAYS: break;  // needs no flags
    }
    return {};
}

int32_t word_offset(ptrdiff_t words) { return static_cast<int32_t>(words * ptrdiff_t{WORD_BYTES}); }

}  // namespace

class Addresses::Assembly {
  public:
    explicit Assembly(const Addresses& addresses, HostAssembler beginning = {})
        : addresses_(addresses), host_(std::move(beginning)) {}

    // What the first segment finds. False: there are no instructions for it.
    bool find(const AddressSlice& slice);
    // The same where there is FOUND alone.
    bool find_alone(const AddressSlice& slice) {
        if (slice.more_->sites.empty()) return true;
        host_.load_constant(REGISTERS, reinterpret_cast<uint64_t>(addresses_.registers_));
        if (!slice.more_->micro_ops.empty())
            host_.load_constant(RESULTS, reinterpret_cast<uint64_t>(addresses_.results_.data()));
        return find(slice);
    }
    bool can_fail() const { return host_.can_fail(); }
    std::span<const uint8_t> finish_or_go_on(Host::Register base, int32_t displacement) {
        host_.return_value();
        host_.fail_to(base, displacement);
        return host_.code();
    }
    std::span<const uint8_t> finish(size_t sites) {
        host_.load_address(Host::RAX, FOUND, word_offset(static_cast<ptrdiff_t>(sites)));
        host_.return_value();
        host_.fail();
        return host_.code();
    }

  private:
    bool micro_op(const BoundMicroOp& op, const Segment& segment);
    void direct(const AddressSlice::Direct& access);
    void indexed(const AddressSlice::Indexed& access);
    // *place + displacement
    void value(Host::Register into, const uint64_t* place, uint64_t displacement) {
        if (place == addresses_.results_.data()) {  // zero
            host_.load_constant(into, displacement);
            return;
        }
        const uint64_t* results = addresses_.results_.data();
        if (place > results && place < results + addresses_.results_.size())
            host_.load(into, RESULTS, word_offset(place - results));
        else
            host_.load(into, REGISTERS, word_offset(place - addresses_.registers_));
        add(into, displacement);
    }
    void value(Host::Register into, const AddressSlice::Operand& operand) {
        value(into, operand.place, operand.displacement);
    }
    void add(Host::Register into, uint64_t displacement) {
        if (displacement == 0) return;
        if (is_near(displacement)) {
            host_.load_address(into, into, static_cast<int32_t>(displacement));
            return;
        }
        host_.load_constant(Host::R8, displacement);
        host_.apply(Host::ADD, into, Host::R8);
    }
    // Uses R8.
    void address(Host::Register into, const AddressSlice::Indexed& at, Host::Register other) {
        value(into, at.base, at.displacement);
        if (at.index == addresses_.results_.data()) return;
        value(other, at.index, 0);
        host_.shift(Host::LEFT, other, at.left());
        host_.shift(at.sign() ? Host::RIGHT_SIGNED : Host::RIGHT, other, at.right());
        host_.apply(Host::ADD, into, other);
    }
    // a + (b << left) to RAX
    void loaded_address(const BoundMicroOp& op) {
        value(Host::RAX, op.a);
        if (op.b.place == addresses_.results_.data() && op.b.displacement == 0) return;
        value(Host::RCX, op.b);
        host_.shift(Host::LEFT, Host::RCX, op.left);
        host_.apply(Host::ADD, Host::RAX, Host::RCX);
    }
    void load_operands(const BoundMicroOp& op) {
        value(Host::RAX, op.a);
        value(Host::RCX, op.b);
    }
    void multiply_high(const BoundMicroOp& op, bool sign);
    void select(const BoundMicroOp& op);
    bool condition(const BoundMicroOp& op);
    void load(const BoundMicroOp& op, bool sign);
    void check_apart(const BoundMicroOp& op, const AddressSlice::Store& store);

    const Addresses& addresses_;
    HostAssembler host_;
};

// From a page that was read lately, as Addresses::load; else it fails.
void Addresses::Assembly::load(const BoundMicroOp& op, bool sign) {
    static_assert(sizeof(CachedPage) == 16 && offsetof(CachedPage, page) == 0);
    const auto pages = static_cast<int32_t>(reinterpret_cast<const uint8_t*>(addresses_.pages_.data()) -
                                            reinterpret_cast<const uint8_t*>(addresses_.results_.data()));
    loaded_address(op);
    host_.move(Host::R8, Host::RAX);
    host_.shift(Host::RIGHT, Host::R8, PAGE_SHIFT);
    host_.move(Host::RCX, Host::R8);
    host_.and_constant(Host::RCX, CACHED_PAGES - 1);
    host_.shift(Host::LEFT, Host::RCX, 4);
    host_.apply(Host::ADD, Host::RCX, RESULTS);
    host_.compare(Host::R8, Host::RCX, pages);
    host_.fail_if(Host::NOT_EQUAL);
    host_.load(Host::RCX, Host::RCX, pages + static_cast<int32_t>(offsetof(CachedPage, host)));
    host_.and_constant(Host::RAX, PAGE_MASK);
    host_.compare_constant(Host::RAX, PAGE_SIZE - WORD_BYTES);
    host_.fail_if(Host::ABOVE);
    host_.load_bytes(Host::RAX, Host::RCX, Host::RAX, op.size, sign);
}

void Addresses::Assembly::check_apart(const BoundMicroOp& op, const AddressSlice::Store& store) {
    loaded_address(op);
    constexpr Host::Register distance = Host::R9;
    host_.move(distance, Host::RAX);
    address(Host::RAX, store.where, Host::RCX);
    host_.apply(Host::SUBTRACT, distance, Host::RAX);  // loaded - stored
    host_.compare_constant(distance, static_cast<int32_t>(store.size));
    host_.fail_if(Host::BELOW);
    host_.negate(distance);
    host_.compare_constant(distance, op.size);
    host_.fail_if(Host::BELOW);
}

void Addresses::Assembly::multiply_high(const BoundMicroOp& op, bool sign) {
    load_operands(op);
    host_.move(Host::R9, RESULTS);
    static_assert(RESULTS == Host::RDX);
    host_.multiply_wide(Host::RCX, sign);
    host_.move(Host::RAX, Host::RDX);
    host_.move(RESULTS, Host::R9);
}

void Addresses::Assembly::select(const BoundMicroOp& op) {
    value(Host::R9, op.c);
    load_operands(op);
    host_.set_flags(Host::OF_AND, Host::R9, Host::R9, false);
    host_.move_if(Host::EQUAL, Host::RAX, Host::RCX);
}

// False: the host has no single condition for it.
bool Addresses::Assembly::condition(const BoundMicroOp& op) {
    const std::optional<Host::Condition> wanted = on_host(op.condition, op.operation);
    if (!wanted) return false;
    const Host::FlagSetter flags = op.operation == Operation::CONDITION_SUBTRACT ? Host::OF_SUBTRACTION
                                   : op.operation == Operation::CONDITION_ADD    ? Host::OF_ADDITION
                                                                                 : Host::OF_AND;
    load_operands(op);
    host_.set_flags(flags, Host::RAX, Host::RCX, op.width == Width::BITS_32);
    host_.set_if(*wanted, Host::RAX);
    return true;
}

bool Addresses::Assembly::micro_op(const BoundMicroOp& op, const Segment& segment) {
    auto load_operands = [&] { this->load_operands(op); };
    auto arithmetic = [&](Host::Arithmetic what) {
        load_operands();
        host_.apply(what, Host::RAX, Host::RCX);
    };
    auto extract = [&](Host::Shift right) {
        value(Host::RAX, op.a);
        host_.shift(Host::LEFT, Host::RAX, op.left);
        host_.shift(right, Host::RAX, op.right);
    };
    auto with_inverse = [&](Host::Arithmetic what) {
        load_operands();
        host_.invert(Host::RCX);
        host_.apply(what, Host::RAX, Host::RCX);
    };
    auto shift = [&](Host::Shift how) {
        load_operands();
        host_.shift_by_count(how, Host::RAX, op.width == Width::BITS_32);
    };
    auto multiply_low_halves = [&](void (Host::*extend)(Host::Register)) {
        load_operands();
        (host_.*extend)(Host::RAX);
        (host_.*extend)(Host::RCX);
        host_.multiply(Host::RAX, Host::RCX);
    };
    switch (op.operation) {
        case Operation::ADD: arithmetic(Host::ADD); break;
        case Operation::SUBTRACT: arithmetic(Host::SUBTRACT); break;
        case Operation::AND: arithmetic(Host::AND); break;
        case Operation::OR: arithmetic(Host::OR); break;
        case Operation::XOR: arithmetic(Host::XOR); break;
        case Operation::AND_NOT: with_inverse(Host::AND); break;
        case Operation::OR_NOT: with_inverse(Host::OR); break;
        case Operation::XOR_NOT: with_inverse(Host::XOR); break;
        case Operation::SHIFT_LEFT: shift(Host::LEFT); break;
        case Operation::SHIFT_RIGHT: shift(Host::RIGHT); break;
        case Operation::SHIFT_RIGHT_SIGNED: shift(Host::RIGHT_SIGNED); break;
        case Operation::ROTATE_RIGHT: shift(Host::ROTATE_RIGHT); break;
        case Operation::EXTRACT: extract(Host::RIGHT); break;
        case Operation::EXTRACT_SIGNED: extract(Host::RIGHT_SIGNED); break;
        case Operation::MULTIPLY_ADD:
            load_operands();
            host_.multiply(Host::RAX, Host::RCX);
            value(Host::RCX, op.c);
            host_.apply(Host::ADD, Host::RAX, Host::RCX);
            break;
        case Operation::MULTIPLY_SUBTRACT:
            load_operands();
            host_.multiply(Host::RCX, Host::RAX);
            value(Host::RAX, op.c);
            host_.apply(Host::SUBTRACT, Host::RAX, Host::RCX);
            break;
        case Operation::MULTIPLY_LONG: multiply_low_halves(&Host::clear_high_half); break;
        case Operation::MULTIPLY_LONG_SIGNED: multiply_low_halves(&Host::extend_low_half); break;
        case Operation::MULTIPLY_HIGH: multiply_high(op, false); break;
        case Operation::MULTIPLY_HIGH_SIGNED: multiply_high(op, true); break;
        case Operation::SELECT: select(op); break;
        case Operation::CONDITION_SUBTRACT:
        case Operation::CONDITION_ADD:
        case Operation::CONDITION_AND:
            if (!condition(op)) return false;
            break;
        case Operation::LOAD: load(op, false); break;
        case Operation::LOAD_SIGNED: load(op, true); break;
        case Operation::CHECK_APART: check_apart(op, segment.stores[op.place]); return true;
        default: return false;
    }
    if (op.width == Width::BITS_32) host_.clear_high_half(Host::RAX);
    host_.store(RESULTS, word_offset(op.place), Host::RAX);
    return true;
}

void Addresses::Assembly::direct(const AddressSlice::Direct& access) {
    host_.load(Host::RAX, REGISTERS, word_offset(access.base));
    add(Host::RAX, static_cast<uint64_t>(int64_t{access.displacement}));
    host_.store(FOUND, word_offset(access.site), Host::RAX);
}

void Addresses::Assembly::indexed(const AddressSlice::Indexed& access) {
    address(Host::RAX, access, Host::RCX);
    host_.store(FOUND, word_offset(static_cast<ptrdiff_t>(access.site())), Host::RAX);
}

bool Addresses::Assembly::find(const AddressSlice& slice) {
    const Segment& segment = slice.more_->segments.front();
    for (const BoundMicroOp& each : segment.micro_ops)
        if (!micro_op(each, segment)) return false;
    const AddressSlice::Word* word = segment.accesses.words.data();
    for (unsigned access = 0; access < segment.accesses.direct; ++access)
        direct(std::bit_cast<AddressSlice::Direct>(*word++));
    for (unsigned access = 0; access < segment.accesses.indexed; ++access, word += AddressSlice::INDEXED_WORDS) {
        AddressSlice::Indexed at;
        std::memcpy(&at, word, sizeof at);
        indexed(at);
    }
    return true;
}

const void* Addresses::assemble_behind(HostAssembler beginning, const AddressSlice& slice, HostAssembler::Register base,
                                       int32_t displacement) {
    if (!slice.one_segment_ || !file_) return nullptr;
    Assembly assembly(*this, std::move(beginning));
    if (!assembly.find_alone(slice)) return nullptr;
    return code_.add(assembly.finish_or_go_on(base, displacement));
}

SliceFunction Addresses::assemble(const AddressSlice& slice) {
    if (!slice.one_segment_ || !file_) return {};
    if (slice.more_->sites.empty()) return {find_nothing, true};
    Assembly assembly(*this);
    if (!assembly.find(slice)) return {};
    const auto code = reinterpret_cast<SliceCode>(code_.add(assembly.finish(slice.more_->sites.size())));
    return {code, code && !assembly.can_fail()};
}

}  // namespace perfemu
