#include "address/addresses.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace perfemu {

using slice::FlagBits;
using slice::Operation;
using slice::Value;
using slice::ValueNumber;
using slice::Width;

namespace {

constexpr unsigned MOST_FUTILE_ATTEMPTS = 8;  // to have a block translated anew; one is enough unless all is wrong

std::string hexadecimal(uint64_t number) {
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string text;
    do text.insert(text.begin(), DIGITS[number % 16]);
    while (number /= 16);
    return "0x" + text;
}

template <typename T>
T host_value(const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

uint64_t displacement(const slice::Address& at) {
    return static_cast<uint64_t>(at.base.displacement) + (static_cast<uint64_t>(at.index.displacement) << at.shift);
}

}  // namespace

Addresses::Addresses(uc_engine* engine, const Isa& isa, Restrictions restrictions)
    : engine_(engine), arch_(isa.engine_arch()), pc_register_(isa.pc()),
      compiler_(slice::SliceCompiler::make(arch_ == UC_ARCH_ARM64 ? "aarch64" : "x86_64")),
      call_range_(engine, &Addresses::on_instruction, this) {
    if (!restrictions.no_register_file) file_ = RegisterFile::locate(engine, arch_);
    find_registers();
    for (const EntryRegister& reg : entry_registers(arch_)) engine_numbers_[reg.number] = reg.engine_number;
    uc_hook handle;
    uc_err error = uc_hook_add(engine, &handle, UC_HOOK_EDGE_GENERATED,
                               reinterpret_cast<void*>(&Addresses::on_translation), this, 1, 0);
    every_instruction_calls_ = restrictions.no_call_range || !call_range_.adjustable() || error != UC_ERR_OK;
    if (every_instruction_calls_ && call_range_.adjustable()) call_range_.set_everywhere();
}

const char* Addresses::way() const {
    if (every_instruction_calls_) return file_ ? "calls" : "calls, registers by API";
    return file_ ? "slices" : "slices, registers by API";
}

void Addresses::set_address_space(const AddressTranslation& space) {
    if (&space == space_) return;
    space_ = &space;
    pages_.fill({});
    seen_generation_ = space.generation();
    retranslating_ = 0;
    wanted_ = {};
    if (!every_instruction_calls_) call_range_.set_nowhere();
}

Addresses::TranslatedAt Addresses::translated_at(uint64_t address) const {
    const Page page = space_->lookup(address);
    return {address, page.present ? page.frame : NO_FRAME};
}

// --- making slices ---

void Addresses::compile(AddressSlice& slice, uint64_t address, std::span<const uint8_t> bytes) {
    slice.more_->address = address;
    slice.more_->bytes.assign(bytes.begin(), bytes.end());
    fill(slice, {.every_op_alone = every_instruction_calls_});
}

// Entry registers are read where the engine has them, if these places are near enough to each other, else copied.
void Addresses::find_registers() {
    if (file_) {
        const uint64_t *lowest = nullptr, *highest = nullptr;
        for (const uint64_t* place : file_->registers) {
            if (!place) continue;
            lowest = lowest ? std::min(lowest, place) : place;
            highest = std::max(highest, place);
        }
        if (highest - lowest > std::numeric_limits<uint16_t>::max()) file_.reset();
        registers_ = lowest;
        for (unsigned number = 0; file_ && number < register_at_.size(); number++)
            if (const uint64_t* place = file_->registers[number])
                register_at_[number] = static_cast<uint16_t>(place - lowest);
    }
    if (file_) return;
    registers_ = copies_.data();
    for (unsigned number = 0; number < register_at_.size(); number++)
        register_at_[number] = static_cast<uint16_t>(number);
}

const uint64_t* Addresses::place_of(Value value) const {
    if (value.place >= slice::ZERO) return &results_[static_cast<size_t>(value.place - slice::ZERO)];
    return registers_ + register_at_[static_cast<size_t>(value.place)];
}

AddressSlice::Operand Addresses::operand(Value value) const {
    return {place_of(value), static_cast<uint64_t>(value.displacement)};
}

AddressSlice::Indexed Addresses::indexed(const slice::Address& at, size_t site) const {
    unsigned above = 64 - 8u * at.extension.size_bytes, up = std::max<unsigned>(above, at.shift);
    return {.base = place_of(at.base),
            .index = place_of(at.index),
            .displacement = displacement(at),
            .shape = AddressSlice::Indexed::shape_of(site, up, up - at.shift, at.extension.sign)};
}

namespace {

void note(std::array<bool, slice::ENTRY_REGISTERS>& read, Value value) {
    if (value.place < slice::ZERO) read[static_cast<size_t>(value.place)] = true;
}

}  // namespace

void Addresses::fill(AddressSlice& slice, slice::Caution caution) {
    AddressSlice::More& more = *slice.more_;
    slice::Slice made = compiler_->compile(more.address, more.bytes, caution);
    more.sites = std::move(made.sites);
    more.segments.clear();
    size_t site = 0;
    bool guesses = false;
    for (const slice::Segment& from : made.segments) {
        Segment& segment = more.segments.emplace_back();
        segment.pc = more.address + from.offset;
        segment.first_op = from.first_op;
        std::array<bool, slice::ENTRY_REGISTERS> read{};
        size_t first_site = site;
        for (const slice::MicroOp& op : from.micro_ops) {
            for (Value value : {op.a, op.b, op.c}) note(read, value);
            bool checks = op.operation == Operation::CHECK_APART;
            BoundMicroOp bound{.operation = op.operation,
                               .width = op.width,
                               .left = op.left,
                               .right = op.size ? static_cast<uint8_t>(64 - 8 * op.size) : op.right,
                               .size = op.size,
                               .condition = op.condition,
                               .place = 0,
                               .a = operand(op.a),
                               .b = operand(op.b),
                               .c = operand(op.c)};
            if (checks) {
                guesses = true;
                bound.place = static_cast<uint16_t>(segment.stores.size());
                segment.stores.push_back(
                    {indexed(from.addresses[op.store], 0), more.sites[first_site + op.store].size});
            } else {
                bound.place = static_cast<uint16_t>(op.result - slice::ZERO);
            }
            segment.micro_ops.push_back(bound);
        }
        std::vector<AddressSlice::Direct> directs;
        std::vector<AddressSlice::Indexed> others;
        for (const slice::Address& at : from.addresses) {
            note(read, at.base);
            note(read, at.index);
            auto where = indexed(at, site++);
            auto bytes = static_cast<int64_t>(where.displacement);
            if (at.base.place < slice::ZERO && at.index.constant() && bytes == static_cast<int32_t>(bytes)) {
                uint16_t base = register_at_[static_cast<size_t>(at.base.place)];
                directs.push_back({static_cast<uint16_t>(where.site()), base, static_cast<int32_t>(bytes)});
            } else {
                others.push_back(where);
            }
        }
        segment.accesses.assign(directs, others);
        if (more.segments.size() == 1) slice.accesses_.assign(directs, others);
        for (unsigned number = 0; !file_ && number < read.size(); number++)
            if (read[number]) segment.registers.push_back(static_cast<uint8_t>(number));
    }
    const Segment& first = more.segments.front();
    more.micro_ops = first.micro_ops;
    slice.one_segment_ = more.segments.size() == 1;
    slice.plain_ = slice.one_segment_ && first.micro_ops.empty() && first.registers.empty();
    more.called = slice.one_segment_ ? nullptr : &called_[translated_at(more.address)];
    if (!guesses) more.bytes = {};
}

// --- entering blocks ---

FlagBits Addresses::flags() const {
    if (!file_ || !file_->negative) return read_flags(engine_, arch_);
    return {static_cast<bool>(*file_->negative >> 31), *file_->not_zero == 0, *file_->carry != 0,
            static_cast<bool>(*file_->overflow >> 31)};
}

// The guest's memory. What cannot be read is zero: the instruction whose load this is will fault for the same reason,
// so that no address that depends on it is of an instruction that retires.
inline uint64_t Addresses::load(uint64_t address, unsigned size) {
    const CachedPage& cached = pages_[(address >> PAGE_SHIFT) % CACHED_PAGES];
    if (cached.page != address >> PAGE_SHIFT || (address & PAGE_MASK) > PAGE_SIZE - sizeof(uint64_t)) [[unlikely]]
        return load_slowly(address, size);
    const uint8_t* from = cached.host + (address & PAGE_MASK);
    switch (size) {
        case 8: return host_value<uint64_t>(from);
        case 4: return host_value<uint32_t>(from);
        case 2: return host_value<uint16_t>(from);
        default: return *from;
    }
}

// False if a load would have to see what a store of the same segment has yet to write.
inline bool Addresses::run(std::span<const BoundMicroOp> micro_ops, const Segment& segment) {
    for (const BoundMicroOp& op : micro_ops) {
        uint64_t a = op.a.value(), b = op.b.value(), result;
        switch (op.operation) {
            case Operation::ADD: result = a + b; break;
            case Operation::AND: result = a & b; break;
            case Operation::EXTRACT: result = a << op.left >> op.right; break;
            case Operation::EXTRACT_SIGNED:
                result = static_cast<uint64_t>(static_cast<int64_t>(a << op.left) >> op.right);
                break;
            case Operation::LOAD: result = load(a + (b << op.left), op.size); break;
            case Operation::LOAD_SIGNED: {
                uint64_t value = load(a + (b << op.left), op.size);
                result = static_cast<uint64_t>(static_cast<int64_t>(value << op.right) >> op.right);
                break;
            }
            case Operation::CHECK_APART: {
                uint64_t loaded = a + (b << op.left);
                const AddressSlice::Store& store = segment.stores[op.place];
                uint64_t stored = store.where.address();
                if (loaded - stored < store.size || stored - loaded < op.size) return false;
                continue;
            }
            case Operation::CONDITION_ENTRY: result = slice::holds(op.condition, flags()); break;
            default:
                result = slice::evaluate(op.operation, op.width, op.left, op.right, op.condition, a, b, op.c.value());
        }
        results_[op.place] = op.width == Width::BITS_64 ? result : static_cast<uint32_t>(result);
    }
    return true;
}

uint64_t* Addresses::enter_at_once(const AddressSlice& slice, uint64_t* found) {
    if (!slice.one_segment_ || !file_ || !run(slice.more_->micro_ops, slice.more_->segments.front())) return nullptr;
    slice.accesses_.find(registers_, found);
    return found + slice.more_->sites.size();
}

uint64_t* Addresses::enter_in_place(const AddressSlice& slice, uint64_t* found) {
    const AddressSlice::More& more = *slice.more_;
    if (more.segments.size() < 2 || !calls_are_in_place(more)) return nullptr;
    entered_ = &slice;
    return begin_segments(more, found) ? found + more.sites.size() : nullptr;
}

bool Addresses::enter_computed(AddressSlice& slice, uint64_t* found) {
    if (slice.one_segment_ && file_) return enter_at_once(slice, found) || remake(slice, found);
    return enter_segments(slice, found);
}

bool Addresses::enter_segments(AddressSlice& slice, uint64_t* found) {
    const AddressSlice::More& more = *slice.more_;
    if (more.segments.size() > 1 && !calls_are_in_place(more) && !translated_silently(more)) {
        retranslate(more);
        return false;
    }
    return begin_segments(more, found) || remake(slice, found);
}

bool Addresses::begin_segments(const AddressSlice::More& more, uint64_t* found) {
    if (!compute(more.segments.front(), found)) return false;
    found_ = found;
    next_segment_ = 1;
    found_ops_ = more.segments.size() > 1 ? more.segments[1].first_op : ALL_OPS;
    return true;
}

// A load of the slice would have to see what a store of the block has yet to write.
bool Addresses::remake(AddressSlice& slice, uint64_t* found) {
    remade_slices_++;
    fill(slice, {.loads_behind_stores = true, .every_op_alone = every_instruction_calls_});
    called_[translated_at(slice.more_->address)] = {};
    return enter_computed(slice, found);
}

// Before an instruction that lies in the call range, or did when its block was translated.
void Addresses::on_instruction(uc_engine*, uint64_t pc, uint32_t, void* user) {
    Addresses& self = *static_cast<Addresses*>(user);
    if (!self.entered_) return;
    const std::deque<Segment>& segments = self.entered_->more_->segments;
    if (self.next_segment_ >= segments.size()) return;
    const Segment& segment = segments[self.next_segment_];
    if (segment.pc != pc) return;
    self.compute(segment, self.found_);
    self.next_segment_++;
    self.found_ops_ = self.next_segment_ < segments.size() ? segments[self.next_segment_].first_op : ALL_OPS;
}

void Addresses::copy_registers(const Segment& segment) {
    for (uint8_t number : segment.registers) copies_[number] = read_register(engine_, engine_numbers_[number]);
}

uint64_t Addresses::load_slowly(uint64_t address, unsigned size) {
    uint64_t value = 0;
    auto* into = reinterpret_cast<uint8_t*>(&value);
    while (size) {
        auto here = static_cast<unsigned>(std::min<uint64_t>(size, PAGE_SIZE - (address & PAGE_MASK)));
        if (const uint8_t* from = readable(address)) std::memcpy(into, from, here);
        into += here;
        address += here;
        size -= here;
    }
    return value;
}

bool Addresses::compute(const Segment& segment, uint64_t* found) {
    if (!segment.registers.empty()) copy_registers(segment);
    if (!run(segment.micro_ops, segment)) return false;
    segment.accesses.find(registers_, found);
    return true;
}

const uint8_t* Addresses::readable(uint64_t address) {
    uint64_t number = address >> PAGE_SHIFT;
    CachedPage& cached = pages_[number % CACHED_PAGES];
    if (cached.page != number) {
        const Page page = space_->lookup(address);
        if (!page.present || !(page.protection & READ)) return nullptr;
        cached = {number, space_->memory().host(page.frame)};
    }
    return cached.host + (address & PAGE_MASK);
}

// --- calls in the middle of blocks ---
//
// A block with several segments is translated anew, once, while the call range covers them. Afterwards the range is
// empty again, so that any translation made later, for whatever reason, has no calls; but the engine announces each
// translation, and the block is found wanting when it is next entered.

bool Addresses::calls_are_in_place(const AddressSlice::More& slice) const {
    if (every_instruction_calls_) return true;
    return slice.called->first <= slice.segments[1].pc && slice.called->last >= slice.segments.back().pc;
}

// Until one block has run to its end (and not been left by a system call, a fault or a written PC), the engine
// announces none. So long, a block is translated anew for every single run, and the next one to come is taken to be it.
bool Addresses::translated_silently(const AddressSlice::More& slice) {
    if (announces_ || retranslating_ != slice.address || wanted_.none()) return false;
    wanted_ = {};
    call_range_.set_nowhere();
    return true;
}

void Addresses::retranslate(const AddressSlice::More& slice) {
    uint64_t address = slice.address;
    futile_ = retranslating_ == address && !wanted_.none() ? futile_ + 1 : 0;
    if (futile_ == MOST_FUTILE_ATTEMPTS) {
        fail("the engine does not translate the block at " + hexadecimal(address) + " anew");
        return;
    }
    retranslations_++;
    called_[translated_at(address)] = {};
    retranslating_ = address;
    wanted_ = {slice.segments[1].pc, slice.segments.back().pc};
    call_range_.set(wanted_.first, wanted_.last);
    uc_ctl_remove_cache(engine_, address, address + 1);
    write_register(engine_, pc_register_, address);
}

// The engine has translated a block.
void Addresses::on_translation(uc_engine*, uc_tb* block, uc_tb*, void* user) {
    Addresses& self = *static_cast<Addresses*>(user);
    if (self.every_instruction_calls_) return;
    self.announces_ = true;
    auto called = self.called_.find(self.translated_at(block->pc));
    if (called == self.called_.end()) return;
    called->second = {};
    if (self.retranslating_ != block->pc || self.wanted_.none()) return;
    called->second = std::exchange(self.wanted_, {});
    self.call_range_.set_nowhere();
}

void Addresses::fail(std::string what) {
    failure_ = std::move(what);
    uc_emu_stop(engine_);
}

}  // namespace perfemu
