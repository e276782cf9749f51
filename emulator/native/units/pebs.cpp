#include "units/pebs.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace perfemu {
namespace {

// The order of general registers in either format, by the engine's names.
constexpr int FIXED_ORDER[] = {UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX,
                               UC_X86_REG_RSI, UC_X86_REG_RDI, UC_X86_REG_RBP, UC_X86_REG_RSP};
constexpr int ADAPTIVE_ORDER[] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX,
                                  UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI};
constexpr int HIGH_REGISTERS[] = {UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
                                  UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};
constexpr uint64_t TRAP_FLAG = 1 << 8;
constexpr ProbeMask LOADS = mask(Probe::LOAD), STORES = mask(Probe::STORE);
constexpr uint64_t MOST_CYCLES = 0xffff;

// Where the data came from, as a load's record encodes it: "Data Source Encoding", bits 3:0.
uint64_t source_of(MemoryLevel level, bool modified) {
    switch (level) {
        case MemoryLevel::L1: return 0x1;
        case MemoryLevel::L2: return 0x3;
        case MemoryLevel::LAST: return 0x4;
        case MemoryLevel::OTHER_CORE: return modified ? 0x7 : 0x6;
        case MemoryLevel::MEMORY: return 0xa;
        default: return 0x0;
    }
}

constexpr uint64_t STLB_MISS = 1 << 4, LOCKED = 1 << 5;

// Whether a counter's event is of stores alone.
bool counts_stores(ProbeMask probes) {
    return probes & mask(Probe::STORE, Probe::DTLB_WALK_STORE, Probe::L1D_SPLIT_STORE) && !(probes & LOADS);
}

// The data source word. Of a store, and where the event is one of stores, bit 0 says whether that hit L1D, in records
// of format 3; in those of format 4 it has the encodings of loads.
uint64_t data_source(const RetiredOp& op, bool adaptive, bool of_stores) {
    const bool loads = op.fired & LOADS, stores = op.fired & STORES;
    if (!loads && !stores) return 0;
    uint64_t word = 0;
    if ((loads && !of_stores) || adaptive)
        word = source_of(level_that_answered(op.fired), op.fired & bit(Probe::FETCHED_HITM));
    else if (!(op.fired & bit(Probe::L1D_REFILL_STORE)))
        word = 1;
    if (op.fired & mask(Probe::DTLB_WALK_LOAD, Probe::DTLB_WALK_STORE)) word |= STLB_MISS;
    if (op.fired & bit(Probe::LOCKED)) word |= LOCKED;
    return word;
}

uint64_t cycles_between(uint64_t from, uint64_t to) { return std::min(to - from, MOST_CYCLES); }

// BR_TYPE of IA32_LBR_x_INFO
uint64_t type_of(BranchKind kind) {
    switch (kind) {
        case BranchKind::INDIRECT: return 1;
        case BranchKind::DIRECT: return 2;
        case BranchKind::INDIRECT_CALL: return 3;
        case BranchKind::CALL: return 4;
        case BranchKind::RETURN: return 5;
        case BranchKind::FAR: return 8;
        default: return 0;
    }
}

}  // namespace

Pebs::Pebs(Core& core, CounterBank& bank, std::shared_ptr<const ShownCycles> clock)
    : core_(core), bank_(bank), clock_(std::move(clock)) {
    for (unsigned number = 0; number < bank.size(); number++)
        counters_.push_back(std::make_unique<Counter>(*this, number));
}

void Pebs::begin(const Settings& settings, std::span<uint64_t> area, std::span<uint8_t> buffer,
                 BranchRecords* branches) {
    end();
    if (area.size() < RESETS + settings.resets + FIXED_COUNTERS)
        throw std::invalid_argument("the DS area has no reset values for all counters");
    const bool ordered = area[BASE] <= area[INDEX] && area[INDEX] <= area[ABSOLUTE_MAXIMUM];
    if (!ordered || area[ABSOLUTE_MAXIMUM] - area[BASE] > buffer.size())
        throw std::invalid_argument("the DS area's PEBS buffer, index and maximum are in no order, or beyond memory");
    settings_ = settings;
    area_ = area;
    buffer_ = buffer;
    branches_ = branches;
    last_applicable_ = nullptr;
    writes_ = true;
    bank_.record(settings.counters, [this] {
        if (!reloading_) select();
    });
    select();
}

void Pebs::end() {
    if (!writes_) return;
    writes_ = false;
    bank_.record(0, nullptr);
    for (auto& counter : counters_)
        if (counter->selects) core_.stop_listening(*counter);
    for (auto& counter : counters_) counter->selects = false;
    area_ = {};
    buffer_ = {};
    last_applicable_ = nullptr;
}

uint64_t Pebs::bit_of(unsigned number) const {
    return uint64_t{1} << (number < settings_.general ? number : number - settings_.general + FIXED_SHIFT);
}

uint64_t Pebs::reset_of(unsigned number) const {
    const unsigned word = number < settings_.general ? number : number - settings_.general + settings_.resets;
    return area_[RESETS + word] & bank_.limit(number);
}

int64_t Pebs::beyond(unsigned number) {
    const uint64_t limit = bank_.limit(number), value = bank_.read(number);
    return value > limit >> 1 ? -static_cast<int64_t>(limit - value + 1) : static_cast<int64_t>(value);
}

// A counter that is beyond its wrap has made more events in one instruction than a period has: it is reloaded no more
// often than a record is written, and what it is ahead stays in it.
uint64_t Pebs::distance(unsigned number) {
    const int64_t ahead = beyond(number);
    if (ahead < 0) return static_cast<uint64_t>(-ahead);
    const uint64_t reset = reset_of(number), limit = bank_.limit(number);
    if (!reset) return limit - static_cast<uint64_t>(ahead) + 1;
    const uint64_t period = limit - reset + 1;
    return period - static_cast<uint64_t>(ahead) % period;
}

// Something that a counter's next record depends on has changed.
void Pebs::select() {
    for (auto& counter : counters_) {
        const unsigned number = counter->number;
        if (std::exchange(counter->selects, false)) core_.stop_listening(*counter);
        const ProbeMask probes = bank_.connected(number);
        if (!(settings_.counters >> number & 1) || !probes) continue;
        core_.select(*counter, probes, distance(number), bank_.levels(number));
        counter->selects = true;
    }
}

Reaction Pebs::overflowed(Counter& counter, const RetiredOp& op) {
    const unsigned number = counter.number;
    const bool is_wanted = !(settings_.slow_loads >> number & 1) || is_slow(op);
    if (is_wanted && !record(number, op)) {  // full: it counts on
        counter.selects = false;
        return {};
    }
    if (const uint64_t reset = reset_of(number)) {
        reloading_ = true;
        bank_.write(number, bank_.read(number) + reset);
        reloading_ = false;
    }
    const bool was_pending = buffer_overflowed;
    buffer_overflowed |= area_[INDEX] >= area_[INTERRUPT_THRESHOLD];
    return {.distance = distance(number), .from_now = true, .interrupts = buffer_overflowed && !was_pending};
}

// False: there is no room, and there will be none before software has made it.
bool Pebs::record(unsigned number, const RetiredOp& op) {
    const uint64_t applicable = bit_of(number);
    if (last_applicable_ && last_choice_ == op.choice) {
        uint64_t counters = 0;
        std::memcpy(&counters, last_applicable_, sizeof(counters));
        counters |= applicable;
        std::memcpy(last_applicable_, &counters, sizeof(counters));
        return true;
    }
    words_.clear();
    if (settings_.adaptive)
        write_adaptive_format(applicable, settings_.with_groups >> number & 1 ? settings_.config : 0, op);
    else
        write_fixed_format(applicable, op, counts_stores(bank_.connected(number)));
    const size_t size = words_.size() * sizeof(uint64_t);
    uint64_t& index = area_[INDEX];
    const uint64_t base = area_[BASE], maximum = area_[ABSOLUTE_MAXIMUM];  // which may be a guest's to change
    if (index < base || index > maximum || maximum - index < size) return false;
    if (buffer_.size() < size || index - base > buffer_.size() - size) return false;
    uint8_t* const at = buffer_.data() + (index - base);
    std::memcpy(at, words_.data(), size);
    index += size;
    constexpr size_t APPLICABLE_FIXED = 18, APPLICABLE_ADAPTIVE = 2;  // words
    last_applicable_ = at + sizeof(uint64_t) * (settings_.adaptive ? APPLICABLE_ADAPTIVE : APPLICABLE_FIXED);
    last_choice_ = op.choice;
    return true;
}

uint64_t Pebs::value_of(int number) const {
    uint64_t value = 0;
    uc_reg_read(core_.engine(), number, &value);
    return value;
}

uint64_t Pebs::flags() const { return value_of(UC_X86_REG_RFLAGS) & ~TRAP_FLAG; }

void Pebs::write_fixed_format(uint64_t applicable, const RetiredOp& op, bool of_stores) {
    put(flags());
    put(op.next);
    for (int number : FIXED_ORDER) put(value_of(number));
    for (int number : HIGH_REGISTERS) put(value_of(number));
    put(applicable);
    put(op.address_known ? op.address : 0);
    put(data_source(op, false, of_stores));
    put(op.fired & LOADS ? cycles_between(op.issued, op.completed) : 0);
    put(op.pc);
    put(0);  // of transactions
    put(tsc_at(op.cycle));
}

void Pebs::write_adaptive_format(uint64_t applicable, uint64_t config, const RetiredOp& op) {
    constexpr uint64_t SIZE = 48, ENTRIES = 24, MOST_ENTRIES = 0xff;  // positions; of MSR_PEBS_DATA_CFG, less one
    put(config);
    put(op.pc);
    put(applicable);
    put(tsc_at(op.cycle));
    if (config & MEMORY) {
        put(op.address_known ? op.address : 0);
        put(data_source(op, true, false));
        const bool accesses = op.fired & (LOADS | STORES);
        put(accesses ? cycles_between(op.dispatched, op.completed) | cycles_between(op.issued, op.completed) << 32 : 0);
        put(0);  // of transactions
    }
    if (config & REGISTERS) {
        put(flags());
        put(op.next);
        for (int number : ADAPTIVE_ORDER) put(value_of(number));
        for (int number : HIGH_REGISTERS) put(value_of(number));
    }
    if (config & VECTORS) put_vectors();
    if (config & BRANCHES) put_branches(static_cast<unsigned>((config >> ENTRIES & MOST_ENTRIES) + 1));
    words_[0] |= static_cast<uint64_t>(words_.size() * sizeof(uint64_t)) << SIZE;
}

void Pebs::put_vectors() {
    constexpr unsigned VECTORS_OF_64_BIT_MODE = 16;
    for (unsigned number = 0; number < VECTORS_OF_64_BIT_MODE; number++) {
        uint64_t value[2] = {};
        uc_reg_read(core_.engine(), static_cast<int>(UC_X86_REG_XMM0 + number), value);
        put(value[0]);
        put(value[1]);
    }
}

// The newest first, as IA32_LBR_x_FROM_IP, _TO_IP and _INFO have them.
void Pebs::put_branches(unsigned entries) {
    constexpr uint64_t TIMED = uint64_t{1} << 60, MISPREDICTED = uint64_t{1} << 63;
    constexpr unsigned TYPE = 56;
    for (unsigned age = 0; age < entries; age++) {
        BranchRecord entry;
        if (branches_ && age < branches_->size())
            entry = branches_->entry((branches_->top() + branches_->size() - age) % branches_->size());
        put(entry.from);
        put(entry.to);
        put(std::min(entry.cycles, MOST_CYCLES) | type_of(entry.kind) << TYPE | (entry.timed ? TIMED : 0) |
            (entry.mispredicted ? MISPREDICTED : 0));
    }
}

}  // namespace perfemu
