#include "slice/builder.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "slice/evaluate.hpp"

namespace perfemu::slice {

namespace {

constexpr size_t MOST_CHECKS = 12;  // of one load against earlier stores; rather a new segment than more
constexpr unsigned WORD_BYTES = 8;

bool same_place(const Address& one, const Address& other) {
    return one.base.place == other.base.place && one.index.place == other.index.place && one.shift == other.shift &&
           one.extension == other.extension;
}

int64_t displacement(const Address& at) {
    return at.base.displacement + static_cast<int64_t>(static_cast<uint64_t>(at.index.displacement) << at.shift);
}

}  // namespace

void SliceBuilder::start(Caution caution) {
    caution_ = caution;
    slice_ = {};
    segment_ = {};
    op_ = offset_ = 0;
    state_ = {};
    begin_segment();
    before_op_ = state_;
}

void SliceBuilder::begin_segment() {
    segment_ = {.first_op = static_cast<uint16_t>(op_), .offset = static_cast<uint16_t>(offset_)};
    stores_.clear();
    state_ = {.sites = slice_.sites.size()};
    for (unsigned number = 0; number < ENTRY_REGISTERS; number++)
        state_.registers[number] = {static_cast<ValueNumber>(number), 0};
}

Slice SliceBuilder::finish() {
    end_segment();
    return std::exchange(slice_, {});
}

void SliceBuilder::begin_op(unsigned op, unsigned offset) {
    op_ = op;
    offset_ = offset;
    before_op_ = state_;
}

bool SliceBuilder::retry() {
    bool accesses = state_.sites != before_op_.sites;
    bool alone = caution_.every_op_alone && accesses && op_ != segment_.first_op;
    if (!alone && !std::exchange(address_missing_, false)) return false;
    if (op_ == segment_.first_op)
        throw std::logic_error("the address of an access does not follow from the registers, at offset " +
                               std::to_string(offset_));
    address_missing_ = false;
    state_ = before_op_;
    stores_.resize(state_.stores);
    segment_.micro_ops.resize(state_.micro_ops);
    segment_.addresses.resize(state_.addresses);
    slice_.sites.resize(state_.sites);
    end_segment();
    begin_segment();
    before_op_ = state_;
    return true;
}

// Keeps only the micro-operations that an address needs.
void SliceBuilder::end_segment() {
    std::vector<bool> needed(state_.results);
    auto need = [&](const Value& value) {
        if (value.place >= FIRST_RESULT) needed[static_cast<size_t>(value.place - FIRST_RESULT)] = true;
    };
    for (const Address& at : segment_.addresses) {
        need(at.base);
        need(at.index);
    }
    std::vector<MicroOp> kept;
    for (auto micro_op = segment_.micro_ops.rbegin(); micro_op != segment_.micro_ops.rend(); ++micro_op) {
        if (!needed[static_cast<size_t>(micro_op->result - FIRST_RESULT)]) continue;
        need(micro_op->a);
        need(micro_op->b);
        need(micro_op->c);
        kept.push_back(*micro_op);
    }
    std::reverse(kept.begin(), kept.end());
    segment_.micro_ops = std::move(kept);
    slice_.segments.push_back(std::move(segment_));
}

Value SliceBuilder::emit(MicroOp micro_op) {
    if (!micro_op.a.known() || !micro_op.b.known() || !micro_op.c.known() || state_.results == MOST_RESULTS)
        return NOTHING_KNOWN;
    micro_op.result = static_cast<ValueNumber>(FIRST_RESULT + static_cast<int>(state_.results++));
    segment_.micro_ops.push_back(micro_op);
    state_.micro_ops = segment_.micro_ops.size();
    return {micro_op.result, 0};
}

Value SliceBuilder::compute(Operation operation, Value a, Value b, Width width) {
    return compute(operation, a, b, constant(0), width);
}

Value SliceBuilder::compute(Operation operation, Value a, Value b, Value c, Width width) {
    if (a.constant() && b.constant() && c.constant())
        return constant(evaluate(operation, width, 0, 0, Condition::ALWAYS, static_cast<uint64_t>(a.displacement),
                                 static_cast<uint64_t>(b.displacement), static_cast<uint64_t>(c.displacement)));
    return emit({.operation = operation, .width = width, .a = a, .b = b, .c = c});
}

Value SliceBuilder::add(Value a, Value b, Width width) {
    if (width == Width::BITS_64 && b.constant() && a.known()) return plus(a, b.displacement);
    if (width == Width::BITS_64 && a.constant() && b.known()) return plus(b, a.displacement);
    return compute(Operation::ADD, a, b, width);
}

Value SliceBuilder::subtract(Value a, Value b, Width width) {
    if (width == Width::BITS_64 && b.constant() && a.known())
        return {a.place,
                static_cast<int64_t>(static_cast<uint64_t>(a.displacement) - static_cast<uint64_t>(b.displacement))};
    return compute(Operation::SUBTRACT, a, b, width);
}

Value SliceBuilder::extract(Value a, unsigned left, unsigned right, bool sign, Width width) {
    Operation operation = sign ? Operation::EXTRACT_SIGNED : Operation::EXTRACT;
    auto left_bits = static_cast<uint8_t>(left), right_bits = static_cast<uint8_t>(right);
    if (a.constant())
        return constant(evaluate(operation, width, left_bits, right_bits, Condition::ALWAYS,
                                 static_cast<uint64_t>(a.displacement), 0, 0));
    return emit({.operation = operation, .width = width, .left = left_bits, .right = right_bits, .a = a});
}

Value SliceBuilder::extend(Value a, unsigned size_bytes, bool sign, Width width) {
    if (size_bytes == WORD_BYTES) return a;
    unsigned above = 64 - 8 * size_bytes;
    return extract(a, above, above, sign, width);
}

Value SliceBuilder::select(Value condition, Value if_true, Value if_false, Width width) {
    if (condition.constant() && if_true.known() && if_false.known())
        return extend(condition.displacement ? if_true : if_false, width == Width::BITS_64 ? 8 : 4, false);
    return compute(Operation::SELECT, if_true, if_false, condition, width);
}

Value SliceBuilder::extended_index(const Address& at) {
    return extend(at.index, at.extension.size_bytes, at.extension.sign);
}

Address SliceBuilder::indexed(Value base, Value index, unsigned shift, Extension extension) {
    Address at{base, index, static_cast<uint8_t>(shift), extension};
    if (index.displacement == 0 || !index.known()) return at;
    return {base, extended_index(at), static_cast<uint8_t>(shift), {}};
}

Value SliceBuilder::address(const Address& at) {
    Value index = extended_index(at);
    return add(at.base, at.shift ? extract(index, at.shift, 0, false) : index);
}

void SliceBuilder::set_flags(Operation kind, Value a, Value b, Width width) {
    state_.flags = {.known = a.known() && b.known(), .kind = kind, .a = a, .b = b, .width = width};
}

Value SliceBuilder::condition(Condition condition) {
    const Flags& flags = state_.flags;
    if (!flags.known) return NOTHING_KNOWN;
    if (condition == Condition::ALWAYS) return constant(1);
    MicroOp micro_op{.operation = flags.kind, .width = flags.width, .condition = condition};
    if (flags.kind != Operation::CONDITION_ENTRY) {
        micro_op.a = flags.a;
        micro_op.b = flags.b;
    }
    return emit(micro_op);
}

void SliceBuilder::access(const Address& at, unsigned size_bytes, unsigned elements, Direction direction) {
    address_missing_ |= !at.known();
    slice_.sites.push_back({.op = static_cast<uint16_t>(op_),
                            .size = static_cast<uint16_t>(size_bytes),
                            .elements = static_cast<uint8_t>(elements),
                            .load = direction == Direction::LOAD,
                            .store = direction == Direction::STORE});
    segment_.addresses.push_back(at);
    state_.sites = slice_.sites.size();
    state_.addresses = segment_.addresses.size();
}

void SliceBuilder::store(const Address& at, unsigned size_bytes, Value value) {
    if (size_bytes > WORD_BYTES) value = NOTHING_KNOWN;
    uint32_t access = static_cast<uint32_t>(segment_.addresses.size() - 1);
    stores_.push_back({.at = at, .size = size_bytes, .value = value, .access = access});
    state_.stores = stores_.size();
}

Value SliceBuilder::load(const Address& at, unsigned size_bytes, bool sign, Width width) {
    if (!at.known()) return NOTHING_KNOWN;
    std::vector<const Store*> others;  // that may be to the same bytes
    for (auto store = stores_.rbegin(); store != stores_.rend(); ++store) {
        if (!same_place(store->at, at)) {
            others.push_back(&*store);
            continue;
        }
        int64_t offset = displacement(at) - displacement(store->at);
        if (offset >= static_cast<int64_t>(store->size) || -offset >= static_cast<int64_t>(size_bytes)) continue;
        if (offset == 0 && store->size == size_bytes && others.empty())
            return store->value.known() ? extend(store->value, size_bytes, sign, width) : NOTHING_KNOWN;
        return NOTHING_KNOWN;
    }
    // Only the first segment can be computed anew, without such a load, if the bytes are the same after all.
    bool may_guess = !caution_.loads_behind_stores && slice_.segments.empty() && others.size() <= MOST_CHECKS;
    if (!others.empty() && !may_guess) return NOTHING_KNOWN;
    Value index = extended_index({.index = {at.index.place, 0}, .extension = at.extension});
    if (!index.known()) return NOTHING_KNOWN;
    // The load itself comes behind its checks: its result's number is the next.
    auto result = static_cast<ValueNumber>(FIRST_RESULT + static_cast<int>(state_.results));
    if (state_.results == MOST_RESULTS) return NOTHING_KNOWN;
    Value base{at.base.place, displacement(at)};
    for (const Store* store : others) {
        MicroOp check{.operation = Operation::CHECK_APART, .left = at.shift, .a = base, .b = index, .result = result};
        check.size = static_cast<uint8_t>(size_bytes);
        check.store = store->access;
        segment_.micro_ops.push_back(check);
    }
    MicroOp load{.operation = sign ? Operation::LOAD_SIGNED : Operation::LOAD, .width = width, .left = at.shift};
    load.size = static_cast<uint8_t>(size_bytes);
    load.a = base;
    load.b = index;
    return emit(load);
}

}  // namespace perfemu::slice
