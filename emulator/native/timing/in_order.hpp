// The in-order pipeline: its state, and what there is to do with it. in_order.cpp has the stages, in_order_state.cpp
// the states of its memo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "timing/execution.hpp"
#include "timing/in_order_ops.hpp"
#include "timing/recalling.hpp"
#include "timing/repeats.hpp"
#include "timing/slots.hpp"
#include "timing/store_writes.hpp"

namespace perfemu::in_order {

constexpr uint64_t FROM_LOAD = 1;  // in a register's entry, below the cycle

// What every instruction changes; see out_of_order.hpp.
struct Hot {
    uint64_t cycle = 0;  // of the next issue
    unsigned used = 0;   // slots of it
    FrontEnd::Progress front;
    uint32_t taken = 0;  // ports, in this cycle
    uint64_t retirement = 0;
    uint64_t micro_ops = 0;
    uint64_t done = 0;  // of the last instruction

    // The last instruction, which may be the first of a pair.
    uint8_t destination = NOWHERE;
    Pair pair = Pair::NONE;
};

class InOrder final : public RecallingPipeline {
  public:
    InOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);

    std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                              std::span<const AccessSite> sites) override;
    Stages last_stages() const override { return {hot_.cycle, hot_.cycle, hot_.done}; }

  private:
    unsigned run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                 uint64_t limit) override;
    void run_iteration(const PreparedBlock& block, const uint64_t* addresses) override;
    void run_to_end() override;
    void run_kernel(uint64_t cycles) override;
    uint64_t now() const override { return hot_.cycle; }
    uint64_t fetched_line() const override { return hot_.front.line; }
    bool save(StateWriter& state) override;
    void restore(StateReader& state) override;

    // The stages, in this order
    void supply(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves);
    bool supply_any(Hot& hot, const PreparedOp& op, uint64_t pc, bool leaves);
    void wait_for_supply(Hot& hot, uint64_t supplied);
    // `POSSIBLE`: the parts that it may have. What it cannot have costs nothing.
    template <unsigned POSSIBLE>
    void execute(Hot& hot, const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc);
    template <unsigned POSSIBLE>
    uint64_t operands(const PreparedOp& op) const;
    template <unsigned POSSIBLE>
    void take_ports(Hot& hot, const Block& block, const PreparedOp& op);
    uint64_t load(const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void store(const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc, uint64_t issued);
    void branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next);

    bool fuse(Hot& hot, const PreparedOp& op);
    void next_slot(Hot& hot);
    void begin_cycle(Hot& hot, uint64_t cycle);
    void wait_to(Hot& hot, uint64_t to, bool memory);

    // Rare
    uint32_t take_several(const Block& block, const PreparedOp& op, uint64_t cycle, uint32_t taken, bool first);
    uint32_t busy_ports(uint64_t cycle) const;
    void feed_caches(const Block& block, const uint64_t* addresses);
    void count_issued();
    uint64_t issuing_cycles() const;
    uint64_t last_result() const;

    Execution execution_;
    OpPreparer preparer_;

    unsigned mispredict_cycles_, stores_per_cycle_;
    unsigned microcode_cycles_, address_extra_, store_data_late_, flags_late_;
    bool blocking_misses_;
    uint64_t load_latency_ = 1;

    Slots slots_;
    Hot hot_;
    uint64_t ready_[256] = {};            // by register: the cycle from which it may be used << 1 | FROM_LOAD
    uint64_t port_free_[32] = {};         // of ports in long_ports_
    uint32_t long_ports_ = 0;             // taken for more than a cycle
    std::vector<uint64_t> store_buffer_;  // by store: the cycle in which its entry is free
    unsigned store_next_ = 0;
    StoreWrites writes_;
    Redirect redirect_;
    Repeats repeats_;
    uint64_t elapsed_ = 0, counted_issuing_ = 0;
};

}  // namespace perfemu::in_order
