#include "units/spe_sampler.hpp"

#include <algorithm>

#include "core/model.hpp"

namespace perfemu {
namespace {

// --- packets: header bytes, and what is in them

constexpr uint8_t PC = 0xb0, BRANCH_TARGET = 0xb1, DATA_VIRTUAL = 0xb2, DATA_PHYSICAL = 0xb3;
constexpr uint8_t TOTAL_LATENCY = 0x98, ISSUE_LATENCY = 0x99, TRANSLATION_LATENCY = 0x9a;
constexpr uint8_t OTHER_OPERATION = 0x48, MEMORY_OPERATION = 0x49, BRANCH_OPERATION = 0x4a;
constexpr uint8_t EVENTS_16 = 0x52, EVENTS_32 = 0x62, DATA_SOURCE = 0x43, CONTEXT_EL1 = 0x64, TIMESTAMP = 0x71;
constexpr uint64_t NON_SECURE = uint64_t{1} << 63, ADDRESS = (uint64_t{1} << 56) - 1;
constexpr unsigned LEVEL = 61;                    // of an instruction's address
constexpr uint64_t MOST_CYCLES = 0xfff;           // counters saturate: PMSIDR_EL1.CountSize
constexpr uint8_t CONDITIONAL = 1, INDIRECT = 2;  // of a branch
constexpr uint8_t STORES = 1, EXTENDED = 2, ATOMIC_OP = 4, EXCLUSIVE_OP = 8, VECTORS = 4;  // of a memory operation

// Bits of the events packet
struct EventRow {
    unsigned bit;
    ProbeMask probes;
};
constexpr unsigned RETIRED = 1, NOT_TAKEN = 6;
constexpr EventRow EVENTS[] = {
    {0, mask(Probe::EXC_TAKEN)},
    {2, mask(Probe::L1D_ACCESS_LOAD, Probe::L1D_ACCESS_STORE)},
    {3, mask(Probe::L1D_REFILL_LOAD, Probe::L1D_REFILL_STORE)},
    {4, mask(Probe::DTLB_ACCESS_LOAD, Probe::DTLB_ACCESS_STORE)},
    {5, mask(Probe::DTLB_WALK_LOAD, Probe::DTLB_WALK_STORE)},
    {7, mask(Probe::BR_MISPREDICTED)},
    {8, mask(Probe::LL_ACCESS_LOAD, Probe::LL_ACCESS_STORE)},
    {9, mask(Probe::LL_REFILL_LOAD, Probe::LL_REFILL_STORE)},
    {10, mask(Probe::FETCHED_HIT, Probe::FETCHED_HITM)},
    {11, mask(Probe::UNALIGNED_LOAD, Probe::UNALIGNED_STORE)},
};

uint64_t events_of(const RetiredOp& op) {
    uint64_t events = uint64_t{1} << RETIRED;
    for (const EventRow& row : EVENTS)
        if (op.fired & row.probes) events |= uint64_t{1} << row.bit;
    if (op.branch == BranchKind::CONDITIONAL && !(op.fired & bit(Probe::BR_TAKEN))) events |= uint64_t{1} << NOT_TAKEN;
    return events;
}

// The numbers that Neoverse N1 has for them; other cores of Arm's design took them over.
uint8_t data_source(MemoryLevel level) {
    switch (level) {
        case MemoryLevel::L2: return 0x8;
        case MemoryLevel::LAST: return 0xb;  // the system's cache
        case MemoryLevel::OTHER_CORE: return 0x9;
        case MemoryLevel::MEMORY: return 0xe;
        default: return 0x0;  // L1
    }
}

constexpr ProbeMask LOADS = mask(Probe::LOAD), STORING = mask(Probe::STORE);

unsigned type_of(const RetiredOp& op) {
    unsigned types = 0;
    if (op.branch != BranchKind::NONE) types |= SpeSampler::BRANCH;
    if (op.fired & LOADS) types |= SpeSampler::LOAD;
    if (op.fired & STORING) types |= SpeSampler::STORE;
    return types;
}

// Which subclass, too, as far as the instruction tells what it is.
uint8_t memory_operation(const RetiredOp& op) {
    const bool loads = op.fired & LOADS, stores = op.fired & STORING;
    if (op.fired & mask(Probe::LOAD_EXCLUSIVE, Probe::STORE_EXCLUSIVE))
        return EXTENDED | EXCLUSIVE_OP | (op.fired & bit(Probe::STORE_EXCLUSIVE) ? STORES : 0);
    if (loads && stores) return EXTENDED | ATOMIC_OP;
    return (stores ? STORES : 0) | (op.fired & bit(Probe::SIMD_OP) ? VECTORS : 0);
}

class Writer {
  public:
    explicit Writer(std::vector<uint8_t>& bytes) : bytes_(bytes), begin_(bytes.size()) {}

    void put(uint8_t header, uint64_t payload, unsigned size) {
        bytes_.push_back(header);
        for (unsigned i = 0; i < size; i++) bytes_.push_back(static_cast<uint8_t>(payload >> 8 * i));
    }
    void put_cycles(uint8_t header, uint64_t cycles) { put(header, std::min(cycles, MOST_CYCLES), 2); }
    // The timestamp, last, is filled in by who knows the time.
    void end() {
        const auto at = static_cast<uint8_t>(bytes_.size() - begin_);
        put(TIMESTAMP, 0, 8);
        bytes_.resize(begin_ + SpeSampler::RECORD);
        bytes_.back() = at;
    }

  private:
    std::vector<uint8_t>& bytes_;
    size_t begin_;
};

}  // namespace

void SpeSampler::start(const Order& order) {
    stop();
    order_ = order;
    full = lost = false;
    left_ = std::max<uint64_t>(order.distance, 1);
    core_.select(*this, bit(Probe::INST_RETIRED), left_, order_.levels);
    due_ = core_.sum(bit(Probe::INST_RETIRED), order_.levels) + left_;
    counts_ = true;
}

uint64_t SpeSampler::stop() {
    if (!counts_) return left_;
    core_.stop_listening(*this);
    counts_ = false;
    const uint64_t now = core_.sum(bit(Probe::INST_RETIRED), order_.levels);
    return left_ = due_ > now ? due_ - now : 1;
}

// x**31 + x**28 + 1, a step for each of 8 bits.
uint64_t SpeSampler::next_distance() {
    if (!order_.jitter) return order_.interval;
    for (unsigned i = 0; i < 8; i++) sequence = (sequence << 1 | ((sequence >> 30 ^ sequence >> 27) & 1)) & 0x7fffffff;
    return order_.interval + (sequence & 0xff);
}

bool SpeSampler::is_wanted(const RetiredOp& op, uint64_t events, const Latencies& latencies) const {
    if (order_.filters & BY_TYPE && !(type_of(op) & order_.types)) return false;
    if (order_.filters & BY_EVENTS && (events & order_.events) != order_.events) return false;
    if (order_.filters & BY_NO_EVENTS && events & order_.no_events) return false;
    return !(order_.filters & BY_LATENCY && std::min(latencies.total, MOST_CYCLES) < order_.min_latency);
}

Reaction SpeSampler::selected(const RetiredOp& op) {
    samples++;
    const uint64_t distance = next_distance();
    due_ = core_.sum(bit(Probe::INST_RETIRED), order_.levels) + distance;
    if (op.dispatched < busy_until_) {
        collided = true;
        return {.distance = distance};
    }
    busy_until_ = op.completed;
    const Latencies latencies{op.completed - op.dispatched, op.issued - op.dispatched, op.walked};
    const uint64_t events = events_of(op) & order_.wanted;
    if (!is_wanted(op, events, latencies)) return {.distance = distance};
    lost = order_.room < RECORD;
    if (!lost) {
        record(op, events, latencies);
        order_.room -= RECORD;
        if (order_.room >= RECORD) return {.distance = distance};
    }
    full = true;
    counts_ = false;
    left_ = distance;
    return {.interrupts = true};
}

void SpeSampler::record(const RetiredOp& op, uint64_t events, const Latencies& latencies) {
    const uint64_t at = NON_SECURE | static_cast<uint64_t>(core_.level()) << LEVEL;
    Writer writer(records_.bytes);
    writer.put(PC, (op.pc & ADDRESS) | at, 8);
    writer.put_cycles(ISSUE_LATENCY, latencies.issue);
    writer.put_cycles(TOTAL_LATENCY, latencies.total);
    if (op.fired & (LOADS | STORING)) {
        if (op.address_known) {
            writer.put(DATA_VIRTUAL, op.address, 8);
            const auto physical = order_.packets & PHYSICAL ? core_.physical(op.address) : std::nullopt;
            if (physical) writer.put(DATA_PHYSICAL, (order_.ram_base + *physical & ADDRESS) | NON_SECURE, 8);
        }
        writer.put_cycles(TRANSLATION_LATENCY, latencies.translation);
        const MemoryLevel level = level_that_answered(op.fired);
        if (op.fired & LOADS && level != MemoryLevel::NONE) writer.put(DATA_SOURCE, data_source(level), 1);
        writer.put(MEMORY_OPERATION, memory_operation(op), 1);
    } else if (op.branch != BranchKind::NONE) {
        const bool indirect = op.branch == BranchKind::INDIRECT || op.branch == BranchKind::INDIRECT_CALL ||
                              op.branch == BranchKind::RETURN;
        writer.put(BRANCH_OPERATION,
                   (op.branch == BranchKind::CONDITIONAL ? CONDITIONAL : 0) | (indirect ? INDIRECT : 0), 1);
        writer.put(BRANCH_TARGET, (op.next & ADDRESS) | at, 8);
    } else {
        writer.put(OTHER_OPERATION, 0, 1);
    }
    if (events >> 16)
        writer.put(EVENTS_32, events, 4);
    else
        writer.put(EVENTS_16, events, 2);
    if (order_.packets & CONTEXT) {
        const uint32_t number = order_.context_register;
        writer.put(CONTEXT_EL1, number ? core_.read_kernel_register(number) : context, 4);
    }
    writer.end();
    records_.cycles.push_back(op.completed);
}

}  // namespace perfemu
