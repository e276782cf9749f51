// What a core file says of the out-of-order pipeline, and blocks in its own form.
#include <algorithm>
#include <bit>

#include "timing/out_of_order.hpp"

namespace perfemu::out_of_order {

OutOfOrder::OutOfOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals)
    : MemoizingPipeline(config, memory, totals), branches_(branches), execution_(config),
      placement_(config, execution_), preparer_(config, execution_, placement_), environment_(memory, branches),
      front_(config, environment_), calendar_(execution_.groups()), schedulers_(placement_.sizes()),
      load_store_(config, memory, totals), first_targets_(branch_table(config), "first_"),
      slots_(counts_, checked(config.table("pipeline"), "dispatch_width", 1, 64)), repeats_(config.table("pipeline")) {
    const Config& keys = config.table("pipeline");
    retire_width_ = checked(keys, "retire_width", 1, 64, slots_.width());
    hot_.decodes = decode_width_ = checked(keys, "decode_width", 1, 64, slots_.width());
    // Instructions are more than slots only where pairs fuse.
    const Fusion& fusion = preparer_.fusion();
    decode_limits_ = decode_width_ < slots_.width() || fusion.compare_branch || fusion.arithmetic_branch ||
                     fusion.aes || fusion.move_computation;
    rob_size_ = checked(keys, "rob_entries", 8, 65536);
    rob_mask_ = std::bit_ceil(rob_size_) - 1;
    rob_ = std::make_unique<CycleSlot[]>(rob_mask_ + 1);
    if (keys.has("load_queue")) load_queue_size_ = checked(keys, "load_queue", 1, 65536);
    load_queue_ = std::make_unique<uint64_t[]>(load_queue_size_);
    mispredict_cycles_ = checked(keys, "mispredict_cycles", 1, 1000);
    microcode_cycles_ = checked(keys, "microcode_cycles", 0, 1000, 0);
    moves_per_cycle_ = checked(keys, "eliminated_moves_per_cycle", 0, 64, 0);
    if (config.has_table("l1d")) default_load_latency_ = checked(config.table("l1d"), "latency", 1, 1000, 1);
    load_entry_ = placement_.entry(execution_.load);
    address_entry_ = placement_.entry(execution_.store_address);
    data_entry_ = placement_.entry(execution_.store_data);
    vector_data_entry_ = placement_.entry(execution_.vector_store_data);
    write_back_entry_ = placement_.entry(execution_.write_back);
    load_ports_ = load_entry_.scheduler == Entry::SEVERAL ? 0 : calendar_.simple_ports(load_entry_.use);
    has_store_data_ = execution_.has_store_data;
    // Fetch comes back to within `ahead` with each new piece of code; until then decode goes on by so many
    // instructions.
    earliest_ = front_.ahead + 3;
    if (decode_limits_) earliest_ += uint64_t{front_.fetch_bytes} * front_.taken_per_cycle / decode_width_;
}

std::unique_ptr<PreparedBlock> OutOfOrder::make_block(uint64_t address, std::span<const TimedOp> ops,
                                                      std::span<const AccessSite> sites) {
    auto prepared = prepare_ops<Block>(
        address, ops, sites, front_,
        [this](const TimedOp& op, const SiteRange& range, Block&) { return preparer_.prepare(op, range); });
    Block& block = static_cast<Block&>(*prepared);
    block.number = blocks_++;
    block.first_line = address & front_.line_mask;
    block.second_line = (address + block.ops[0].length - 1) & front_.line_mask;
    for (const PreparedOp& op : block.ops) {
        if (op.slots > most_slots_) {  // there may be entries for which this one will wait
            settle();
            leave_memo();
            memo_.clear();
            most_slots_ = op.slots;
        }
        block.stores += op.store_sites;
        for (uint8_t written : op.destinations)
            if (written != NOWHERE) registers_ = std::max(registers_, written + 1u);
        if (op.parts & WRITE_BACK) registers_ = std::max(registers_, op.write_back + 1u);
    }
    return prepared;
}

}  // namespace perfemu::out_of_order
