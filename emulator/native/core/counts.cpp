// Counts: the budget until something is due, and the totals that are folded from blocks' runs when somebody asks.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {
namespace {

constexpr uint64_t POLL_INSTRUCTIONS = 2'000'000;
constexpr uint64_t POLL_MODELLED = 200'000;
constexpr uint64_t POLL_SLOW = 1'000'000;
constexpr uint64_t FOLD_INSTRUCTIONS = uint64_t{1} << 30;  // Block::runs are of 32 bits
constexpr size_t MOST_LINKED = 1 << 14;                    // blocks are a few thousand, but come again after each fold
constexpr uint64_t MOST_EVENTS = uint64_t{1} << 30;
constexpr uint64_t NEVER = ~uint64_t{0};
constexpr uint64_t LONG_BEFORE = 1 << 14;  // instructions: longer than any block
constexpr ProbeMask DYNAMIC_BRANCHES = mask(Probe::BR_COND_TAKEN, Probe::BR_TAKEN);  // not known from the block alone

}  // namespace

// Books what was taken from the budget; nothing fits until the next `plan`.
void Core::drop_budget() {
    if (model_) budget_ += std::exchange(model_->log.room, 0) + std::exchange(model_->log.held, 0);
    retired_ = retired();
    planned_instructions_ = 0;
    budget_ = held_ = 0;
}

void Core::plan() {
    drop_budget();
    if (retired_ - folded_at_ > FOLD_INSTRUCTIONS) fold();
    uint64_t instructions = model_ ? POLL_MODELLED : std::min(until_ - cycles(), POLL_INSTRUCTIONS);
    if (undue()) {
        grant(std::min(instructions, undue_until_ - retired_), MOST_EVENTS);
        return;
    }
    ProbeMask event_probes = 0;
    if (model_) plan_model();
    undue_until_ = NEVER;
    ProbeMask retirement = models_ ? bit(Probe::INST_RETIRED) : RETIREMENT;
    uint64_t events = MOST_EVENTS;
    auto due_after = [&](uint64_t remaining, ProbeMask probes) {
        if (models_ && probes & (~DECODED | bit(Probe::CYCLES))) return;  // plan_model's
        const uint64_t undue = (std::max<uint64_t>(remaining, 1) - 1) / size(probes);
        undue_until_ = std::min(undue_until_, retired_ + std::min(undue, NEVER - retired_));
        if (probes & ~retirement) {
            event_probes |= probes;
            events = std::min(events, remaining);
        } else {
            uint64_t each = size(probes);
            instructions = std::min(instructions, (remaining + each - 1) / each);
        }
    };
    for (auto& bank : banks_)
        for (const CounterBank::Armed& counter : bank->armed()) due_after(counter.remaining, counter.probes);
    for (const Selection& selection : selections_) {
        if (!contains(selection.levels, level_)) continue;
        const uint64_t now = sum(selection.probes, selection.levels);
        due_after(selection.due - std::min(now, selection.due - 1), selection.probes);
    }
    // A conditional branch may turn out to be taken.
    if (event_probes & DYNAMIC_BRANCHES) event_probes |= bit(Probe::BR_COND);
    // Costs that are too high do no harm while nothing of theirs is armed: who comes and goes changes none.
    armed_events_ = event_probes;
    if (event_probes && event_probes != costed_probes_) {
        costed_probes_ = event_probes;
        blocks_.each([this](Block& block) { set_cost(block); });
    }
    grant(instructions, events);
}

bool Core::undue() const { return undue_until_ > LONG_BEFORE && retired() < undue_until_ - LONG_BEFORE; }

void Core::grant(uint64_t instructions, uint64_t events) {
    planned_instructions_ = static_cast<uint32_t>(instructions - 1);
    budget_ = planned_instructions_ | (events - 1) << 32;
}

bool Core::poll_due() {
    uint64_t now = retired();
    if (now - polled_ < (model_ ? POLL_MODELLED : POLL_INSTRUCTIONS) && slow_since_poll_ < POLL_SLOW) return false;
    polled_ = now;
    slow_since_poll_ = 0;
    undue_until_ = 0;  // who is asked may do as he likes
    if (model_) model_->pipeline->settle();
    progress_.store(now, std::memory_order_relaxed);
    return true;
}

void Core::add(ProbeMask probes, uint64_t times) {
    for (; probes; probes &= probes - 1) totals_[lowest(probes)] += times;
}

void Core::fold() {
    folded_at_ = retired();
    for (Block* block : ran_) {
        if (!block->runs && !block->departures) continue;  // only noted, by the last fold
        std::array<uint64_t, DECODED_PROBES> fired{};
        for (unsigned probe = 0; probe < DECODED_PROBES; probe++)
            fired[probe] = static_cast<uint64_t>(int64_t{block->runs} * block->counts[probe]);
        if (block->ends_conditional) {
            fired[static_cast<unsigned>(Probe::BR_COND_TAKEN)] += block->departures;
            fired[static_cast<unsigned>(Probe::BR_TAKEN)] += block->departures;
        }
        add_runs(*block, fired);
        if (ledger_) ledger_->book_block(*block, block->runs, block->departures);
        block->runs = 0;
        block->departures = 0;
    }
    if (model_ && !all_linked_) {
        linked_.insert(linked_.end(), ran_.begin(), ran_.end());
        all_linked_ = linked_.size() > MOST_LINKED;
        if (all_linked_) linked_.clear();
    }
    ran_.clear();
    // It may still depart.
    if (previous_ != &none_) note_run(previous_);
}

// A kernel of the guest's own changes its level often: what blocks have fired is not folded before, as they know
// theirs.
void Core::add_runs(const Block& block, const std::array<uint64_t, DECODED_PROBES>& fired) {
    for (unsigned probe = 0; probe < DECODED_PROBES; probe++) totals_[probe] += fired[probe];
    if (!guest_tables_ || !by_level_) return;
    auto& at = by_level_->at[static_cast<unsigned>(block.frames.level)];
    for (unsigned probe = 0; probe < DECODED_PROBES; probe++) {
        if (RETIREMENT >> probe & 1) continue;  // not among the totals
        at[probe] += fired[probe];
        by_level_->booked[probe] += fired[probe];
    }
}

void Core::follow_branches() {
    if (std::exchange(follows_branches_, true)) return;
    blocks_.each([this](Block& block) { make_unknown(block); });
    followed_from_start_ = retired() == 0;
}

void Core::watch(ProbeMask probes) {
    if (probes & DYNAMIC_BRANCHES) follow_branches();
}

uint64_t Core::total(Probe probe) {
    if (bit(probe) & DYNAMIC_BRANCHES && !followed_from_start_)
        throw std::logic_error(
            "where conditional branches went is only known if follow_branches is called before the first run");
    return sum(bit(probe), EVERY_LEVEL);
}

uint64_t Core::total(Probe probe, Level level) {
    total(probe);  // or say why not
    return sum(bit(probe), static_cast<LevelMask>(1U << static_cast<unsigned>(level)));
}

uint64_t Core::sum(ProbeMask probes, LevelMask levels) {
    uint64_t fired = probes & bit(Probe::CYCLES) && contains(levels, Level::KERNEL) ? worked_ : 0;
    if (levels == EVERY_LEVEL) return fired + sum(probes);
    if (contains(levels, level_)) fired += sum(probes);
    if (!by_level_) return fired;
    if (probes & DECODED) fold();
    // Of the present level, what has not been booked; of the others all is.
    for (; probes; probes &= probes - 1) {
        const unsigned probe = lowest(probes);
        if (contains(levels, level_)) fired -= by_level_->booked[probe];
        for (unsigned level = 0; level < LEVELS; level++)
            if (levels >> level & 1) fired += by_level_->at[level][probe];
    }
    return fired;
}

// What has been counted since this was called last belongs to the present level.
void Core::book_level() {
    if (!guest_tables_) fold();
    if (model_) settle_models();
    auto book = [this](unsigned probe, uint64_t now) {
        by_level_->at[static_cast<unsigned>(level_)][probe] += now - std::exchange(by_level_->booked[probe], now);
    };
    constexpr auto RETIRED = static_cast<unsigned>(Probe::INST_RETIRED), CYCLES = static_cast<unsigned>(Probe::CYCLES);
    for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
        if (probe != RETIRED && probe != CYCLES) book(probe, totals_[probe]);
    book(RETIRED, retired());
    book(CYCLES, user_cycles());
}

void Core::set_level(Level level) {
    if (level == level_) return;
    if (!by_level_) by_level_ = std::make_unique<TotalsByLevel>();
    book_level();
    level_ = level;
    path_listeners_.tell(level);
    drop_budget();
    undue_until_ = 0;
}

uint64_t Core::sum(ProbeMask probes) {
    uint64_t sum = 0;
    if (probes & bit(Probe::INST_RETIRED)) sum += retired();
    if (probes & bit(Probe::CYCLES)) sum += user_cycles();
    probes &= ~RETIREMENT;
    if (probes & DECODED) fold();
    if (model_ && probes & ~DECODED) settle_models();
    for (; probes; probes &= probes - 1) sum += totals_[lowest(probes)];
    return sum;
}

void Core::fire(Probe probe, uint64_t amount) {
    if (bit(probe) & RETIREMENT) throw std::invalid_argument("only the core retires instructions");
    totals_[static_cast<unsigned>(probe)] += amount;
}

// The instruction there, which is counted for itself and not with its block, has fired these.
void Core::add_at(uint64_t address, ProbeMask probes, int64_t times) {
    add(probes, static_cast<uint64_t>(times));
    if (ledger_) ledger_->book(address, probes, times);
}

void Core::attribute(std::vector<Ledger::Column> columns) {
    fold();
    for (const Ledger::Column& column : columns) watch(column.probes | column.less);
    ledger_ = std::make_unique<Ledger>(std::move(columns), models_ ? ~DECODED | bit(Probe::CYCLES) : 0);
}

void Core::attribute_to(Ledger::Account account) {
    if (!ledger_) throw std::logic_error("nothing is attributed: call attribute before attribute_to");
    fold();
    attribute_models(ledger_->last_address());
    ledger_->use(account);
}

std::vector<uint64_t> Core::take_attribution(Ledger::Account account) {
    if (!ledger_) throw std::logic_error("nothing is attributed: call attribute before take_attribution");
    fold();
    attribute_models(ledger_->last_address());
    return ledger_->take(account);
}

// Whether the models are asked behind each instruction.
bool Core::attributes_models() {
    return gear_ == Gear::DETAILED && ledger_ && ledger_->account() != Ledger::NOBODY &&
           !ledger_->modelled_columns().empty();
}

// What the models have counted since this was called last is the instruction's at `address`.
void Core::attribute_models(uint64_t address) {
    for (Ledger::ModelledColumn& column : ledger_->modelled_columns())
        ledger_->book_total(column, address, sum(column.probes) - sum(column.less));
}

}  // namespace perfemu
