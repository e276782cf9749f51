// The out-of-order pipeline: its state, and what there is to do with it. out_of_order.cpp has the loop over
// instructions and the front end, out_of_order_back_end.hpp the stages from dispatch to retirement, load_store_unit.hpp
// what loads and stores ask. out_of_order_memo.cpp has what is done only once, out_of_order_state.cpp its states,
// out_of_order_setup.cpp what comes before the first instruction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "timing/front_end.hpp"
#include "timing/load_store_unit.hpp"
#include "timing/memo_trace.hpp"
#include "timing/memoizing_pipeline.hpp"
#include "timing/out_of_order_ops.hpp"
#include "timing/port_calendar.hpp"
#include "timing/repeats.hpp"
#include "timing/schedulers.hpp"
#include "timing/slots.hpp"

namespace perfemu::out_of_order {

// A cycle and how much of it is used, in one number: later ones are greater.
using CycleSlot = uint64_t;
constexpr unsigned CYCLE = 9;
constexpr CycleSlot USED = (1 << CYCLE) - 1;
constexpr CycleSlot WAITED_FOR_MEMORY = 1 << 8;  // in a ROB entry, above what is used of the cycle: at most 64

constexpr uint64_t cycle_of(CycleSlot slot) { return slot >> CYCLE; }
constexpr unsigned used_of(CycleSlot slot) { return static_cast<unsigned>(slot & USED); }
// In units of `width` from the cycle's start, which may be too many.
[[gnu::always_inline]] inline bool carry(CycleSlot& slot, unsigned width) {
    if (used_of(slot) <= width) [[likely]]
        return false;
    slot += (1 << CYCLE) - width;
    return true;
}

// What every instruction changes. `retire` works on a copy, which the compiler can keep in registers: nothing that is
// not inlined may see it.
struct Hot {
    CycleSlot dispatch = 0;  // slots of the cycle
    FrontEnd::Progress front;
    CycleSlot retirement = 0;  // of the last one
    uint64_t rob_count = 0;    // slots ever taken
    uint64_t retiring_cycles = 0;
    uint64_t done = 0;  // of the last instruction: when its results were there
    uint64_t decode_cycle = 0;
    unsigned decodes = 0;  // how many more in that cycle

    uint64_t cycle() const { return cycle_of(dispatch); }
};

// What the branch unit answers: a Prediction, where the target lies in a piece of fetch, and whether that is fetched.
constexpr uint64_t PREDICTION = 3;
// A small buffer's set depends on more of the address than TargetBuffer takes by itself. No two become the same.
constexpr uint64_t mixed(uint64_t pc) { return pc ^ pc >> 5; }
constexpr uint64_t FAR = uint64_t{1} << 62;  // known, but not to the first target buffer
constexpr uint64_t STREAMS = uint64_t{1} << 61;

// Of an op that may have these: a shape of its own has all of its shape's.
template <unsigned POSSIBLE>
[[gnu::always_inline]] inline unsigned parts_of(const PreparedOp& op) {
    return POSSIBLE == ANY ? op.parts : POSSIBLE;
}

class OutOfOrder final : public MemoizingPipeline<TraceMemo> {
  public:
    OutOfOrder(const Config& config, MemorySystem& memory, BranchUnit& branches, uint64_t* totals);

    std::unique_ptr<PreparedBlock> make_block(uint64_t address, std::span<const TimedOp> ops,
                                              std::span<const AccessSite> sites) override;
    void retire_whole(const PreparedBlock& block, const uint64_t* addresses, uint64_t next) override;
    Stages last_stages() const override {
        const uint64_t dispatched = std::min(hot_.cycle(), hot_.done);
        return {dispatched, std::clamp(issued_, dispatched, hot_.done), hot_.done};
    }

  private:
    unsigned run(const PreparedBlock& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                 uint64_t limit) override;
    unsigned run_block(const Block& block, const uint64_t* addresses, unsigned first, unsigned last, uint64_t next,
                       uint64_t limit);
    void run_iteration(const PreparedBlock& block, const uint64_t* addresses) override;
    void run_kernel(uint64_t cycles) override;
    // The stages, in this order
    uint64_t fetch_and_decode(Hot& hot, const Block& block, const PreparedOp& op, bool leaves, uint64_t pc);
    void wait_for_supply(Hot& hot, uint64_t supplied);
    // `POSSIBLE`: the parts that it may have; `ONE`: it takes one slot. What it cannot have costs nothing.
    template <unsigned POSSIBLE, bool ONE, bool CHOICE = !ONE>
    [[gnu::always_inline]] void execute(Hot& hot, const Block& block, const PreparedOp& op, const uint64_t* addresses,
                                        uint64_t pc);
    void execute_any(Hot& hot, const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc);
    template <unsigned POSSIBLE>
    [[gnu::always_inline]] void wait_for_room(Hot& hot, const PreparedOp& op, unsigned slots);
    template <bool CHOICE>
    [[gnu::always_inline]] Entry enter(Hot& hot, Entry entry);
    template <bool AHEAD>
    [[gnu::always_inline]] uint64_t issue(Entry entry, uint32_t simple_ports, uint64_t ready);
    template <unsigned POSSIBLE>
    [[gnu::always_inline]] uint64_t load(const Block& block, const PreparedOp& op, const uint64_t* addresses,
                                         uint64_t pc, uint64_t issued);
    template <unsigned POSSIBLE, bool ONE, bool CHOICE>
    [[gnu::always_inline]] uint64_t compute(Hot& hot, const PreparedOp& op, Entry entry, uint64_t start);
    template <unsigned POSSIBLE, bool ONE>
    [[gnu::always_inline]] void leave(Hot& hot, const PreparedOp& op, unsigned slots, uint64_t done);
    void store(const Block& block, const PreparedOp& op, const uint64_t* addresses, uint64_t pc, uint64_t data,
               uint64_t retirement);
    void branch(Hot& hot, const PreparedOp& op, uint64_t pc, uint64_t next, bool last);
    unsigned bubble_of(BranchKind kind, Prediction prediction, uint64_t answer) const;

    [[gnu::always_inline]] void write(uint8_t destination, uint64_t ready) {
        ready_[destination] = ready;
        chained_[destination] = false;
    }
    template <unsigned POSSIBLE>
    uint64_t sources_ready(const PreparedOp& op, uint64_t start) const;
    template <unsigned POSSIBLE>
    uint64_t address_sources_ready(const PreparedOp& op, uint64_t start) const;
    uint64_t chain_start(const PreparedOp& op, uint64_t start) const;
    bool fuse(const Hot& hot, const PreparedOp& op, Pair pair, uint8_t destination);
    void next_slot(Hot& hot);
    void wait(Hot& hot, uint64_t to, PipelineProbe reason);
    void wait_to(Hot& hot, uint64_t to);

    // Rare. The next slot is (cycle, used).
    void stand_still(CycleSlot from, uint64_t to, uint64_t rob_count, PipelineProbe reason);
    void lose_in_segments(uint64_t cycle, unsigned used, uint64_t to, uint64_t rob_count, bool memory);
    Entry choose(Entry entry);
    bool too_many_moves(uint64_t cycle);
    uint64_t apply(uint64_t answer, uint64_t issued);
    void feed_caches(const Block& block, const uint64_t* addresses);
    void count_slots();

    static ForwardTraits forward_traits(const PreparedOp& op) {
        return {(op.parts & BY_STACK) != 0, op.general, op.renames, op.load_extra};
    }

    // The environment. Each answer is all that the pipeline needs to know; what is no question answers 0.
    template <typename Describe, typename Answer>
    [[gnu::always_inline]] uint64_t ask(Describe describe, Answer answer_now) {
        if (!recording_) return answer_now();
        if (asked_ < known_) return answers_[asked_++];
        const uint64_t answer = answer_now();
        memo_.add(describe(), answer);
        return answer;
    }
    uint64_t ask_branch(uint64_t straight_from, uint64_t pc, BranchKind kind, uint64_t next, uint64_t fallthrough) {
        Prediction prediction = branches_.resolve(pc, kind, next, fallthrough);
        const bool taken = next != fallthrough, near = !taken || first_targets_.learn(mixed(pc));
        uint64_t within = front_.aligned ? next & (front_.fetch_bytes - 1) : 0;
        return static_cast<uint64_t>(prediction) | uint64_t{taken} << 2 | within << 3 | (near ? 0 : FAR) |
               (front_.streams(straight_from, next) ? STREAMS : 0);
    }

    // The memo: what has been done before is not done again.
    uint32_t name_of(const Block& block) const;
    void review();
    uint64_t now() const override { return hot_.cycle(); }
    bool enter_memo(const Block& block);
    bool returns_to_memo(const Block& block);
    uint32_t begin_whole(const Block& block);
    bool replay(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name);
    void record(const Block& block, const uint64_t* addresses, uint64_t next, uint32_t name);
    void run_recorded(const Block& block, const uint64_t* addresses, uint64_t next);
    void advance(uint32_t transition);
    void check_block(const Block& block, const uint64_t* addresses, uint64_t next, uint64_t line, uint32_t transition);
    bool save(StateWriter& state) override;
    bool holds_up(uint64_t later, uint64_t places) const;
    void save_rob(StateWriter& state) const;
    void save_load_queue(StateWriter& state) const;
    void save_registers(StateWriter& state) const;
    void restore(StateReader& state) override;
    int32_t relative(uint64_t cycle) const { return static_cast<int32_t>(cycle - base_); }

    BranchUnit& branches_;
    Execution execution_;
    Placement placement_;
    OpPreparer preparer_;
    ReplayEnvironment environment_;
    FrontEnd front_;
    PortCalendar calendar_;
    Schedulers schedulers_;
    LoadStoreUnit load_store_;
    TargetBuffer first_targets_;
    Entry load_entry_, address_entry_, data_entry_, vector_data_entry_, write_back_entry_;

    uint32_t load_ports_ = 0;  // if all are in one scheduler
    bool has_store_data_, decode_limits_;
    unsigned retire_width_, decode_width_, moves_per_cycle_, mispredict_cycles_, microcode_cycles_;
    uint64_t default_load_latency_ = 1;

    Slots slots_;
    Hot hot_;
    uint64_t ready_[256] = {};          // by register: the cycle from which it may be used
    bool chained_[256] = {};            // its writer's results are there for others of its class before (chain_latency)
    std::unique_ptr<CycleSlot[]> rob_;  // by slot: its retirement, WAITED_FOR_MEMORY
    uint64_t rob_oldest_ = 0;           // slots that had retired when dispatch last stood still
    unsigned rob_size_ = 0, rob_mask_ = 0;
    // The last instruction, which may be the first of a pair.
    Pair last_pair_ = Pair::NONE;
    uint8_t last_destination_ = NOWHERE;
    std::unique_ptr<uint64_t[]> load_queue_;  // by load: the cycle of retirement; empty: no limit
    unsigned load_queue_size_ = 0, load_next_ = 0;

    uint64_t issued_ = 0;  // when the last instruction that was executed was
    uint64_t moves_cycle_ = 0;
    unsigned moves_ = 0;
    Redirect redirect_;
    Repeats repeats_;
    uint64_t counted_slots_ = 0, counted_retiring_ = 0;

    // In the memo, too, cycle_, hot_.rob_count, hot_.front.line and hot_.front.straight_from are those of now.
    bool has_room_ = false;  // of the block at hand: its stores wait for no entry
    // While a trace is made: its first answers, which have been given already.
    bool recording_ = false;
    size_t asked_ = 0, known_ = 0;
    std::vector<uint64_t> answers_;
    uint32_t fork_ = TraceMemo::NONE;  // the exchange that got another answer; NONE: there is no trace
    uint64_t earliest_ = 0;            // so long before dispatch, it does not matter when fetch and decode were
    uint32_t until_review_ = 1, recorded_ = 0;  // blocks
    // A block that has to be executed costs about DEAR followed ones' gain. What is gained is credit, up to
    // MOST_CREDIT, and so is TRUST at the beginning, when everything is new; it is added up every REVIEWED blocks. When
    // it is used up, a rest of REST blocks for each that was executed makes the loss bearable; then there is RESTED
    // again.
    static constexpr int64_t REVIEWED = 1024, DEAR = 24, REST = 200;
    static constexpr int64_t RESTED = 512 * DEAR, TRUST = 65536 * DEAR, MOST_CREDIT = 4 * TRUST;
    int64_t credit_ = TRUST;
    uint64_t rest_ = 0;       // blocks for which the memo is not looked at
    uint32_t since_cut_ = 0;  // blocks since one that was cut into parts; 0: it is long ago
    uint32_t blocks_ = 0;     // that have been prepared
    unsigned registers_ = 0;  // that their instructions write
    unsigned most_slots_ = 1;
};

}  // namespace perfemu::out_of_order
