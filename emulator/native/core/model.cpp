// What a core has besides its engine if its time is modelled: made, asked and told what comes besides instructions.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

namespace {

// What is added to the latencies' sum for everything that is no latency: queues, widths.
constexpr uint64_t SLACK_CYCLES = 1 << 10;

// The sum of everything in the tables that is a number of cycles.
uint64_t all_cycles(const Config& config) {
    uint64_t sum = 0;
    for (const auto& [key, value] : config.values())
        if (key.ends_with("latency") || key.find("cycles") != key.npos)
            if (const int64_t* cycles = std::get_if<int64_t>(&value)) sum += static_cast<uint64_t>(*cycles);
    for (const auto& [name, table] : config.tables())
        if (name != "ops" && name != "kernel") sum += all_cycles(table);
    return sum;
}

// The most that one instruction takes: it may miss everywhere, twice if it crosses a line, and be the slowest of all.
// Besides it waits for other cores.
uint64_t most_cycles(const Config& config) {
    uint64_t slowest = 0;
    if (config.has_table("ops"))
        for (const auto& [name, op] : config.table("ops").tables()) slowest = std::max(slowest, all_cycles(op));
    return 2 * all_cycles(config) + slowest + SLACK_CYCLES;
}

}  // namespace

Model::Model(const Config& config, std::string_view isa, uint64_t* totals, std::shared_ptr<SharedMemory> shared,
             VisitLog log)
    : config(config), totals(totals),
      memory(config, shared ? std::move(shared) : std::make_shared<SharedMemory>(config), totals),
      branches(config, totals), detailed(Pipeline::make(config, memory, branches, totals)), pipeline(detailed.get()),
      decoder(TimedDecoder::make(isa)), cycles_of_an_instruction(most_cycles(config) + 2 * memory.longest_handover()),
      log(std::move(log)) {}

void Model::begin_pipeline(uint64_t cycle) {
    detailed = Pipeline::make(config, memory, branches, totals);
    pipeline = detailed.get();
    pipeline->elapse(cycle);
    device_accesses.clear();  // as the old one wanted them
}

void DropModelledBlock::operator()(ModelledBlock* modelled) const { delete modelled; }

std::unique_ptr<ModelledBlock, DropModelledBlock> Core::model_block(const Block& block) {
    std::unique_ptr<ModelledBlock, DropModelledBlock> modelled(new ModelledBlock);
    const bool follows = isa_->is_64();  // else they are told of no accesses
    std::vector<TimedOp> ops;
    if (follows) ops = model_->decoder->decode(block.address, block.bytes);
    ops.resize(block.ops.size());  // undecodable bytes: one op here
    for (size_t i = 0; !follows && i < ops.size(); i++)
        ops[i] = {.offset = block.ops[i].offset, .length = block.ops[i].length};
    tell_what_follows(ops);
    tell_what_follows_block(ops.back(), block.address + block.bytes.size());
    model_->addresses->compile(modelled->slice, block.address,
                               follows ? std::span<const uint8_t>(block.bytes) : std::span<const uint8_t>());
    std::span<const AccessSite> sites = modelled->slice.sites();
    modelled->prepared = model_->pipeline->prepare(block.address, ops, sites);
    modelled->ends_with_branch = ops.back().branch != BranchKind::NONE;
    for (const Op& op : block.ops) modelled->raises |= op.raises;
    if (model_->found.size() < sites.size()) model_->found.resize(sites.size());
    return modelled;
}

// A block may end between two that fuse, a compare and its branch or a move and what computes on it, and time must not
// depend on where blocks end.
void Core::tell_what_follows_block(TimedOp& last, uint64_t end) const {
    if (!last.compares && !last.eliminable_move && !last.loads_whole) return;
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes{};
    std::span<const uint8_t> code = std::span(bytes).first(read_code(end, bytes));
    if (code.empty()) return;
    std::array<TimedOp, 2> both{last, model_->decoder->decode(end, code)[0]};
    tell_what_follows(both);
    last = both[0];
}

// After the engine has stopped: whether the models have been told the truth.
void Core::check_addresses() const {
    const std::string& failure = model_->addresses->failure();
    if (!failure.empty()) throw std::logic_error("data addresses: " + failure);
    if (lost_addresses_) throw std::logic_error("data addresses of a block were lost");
}

void Core::trace(unsigned first, unsigned last) {
    const Block& block = *model_->visit.block;
    std::span<const AccessSite> sites = block.modelled->slice.sites();
    for (size_t i = 0; i < sites.size(); i++)
        if (sites[i].op >= first && sites[i].op < last)
            model_->trace.push_back({block.address + block.ops[sites[i].op].offset, model_->found[i], sites[i].size,
                                     sites[i].elements, sites[i].store});
}

void Core::plan_model() {
    Model& model = *model_;
    const uint64_t cycle = model.pipeline->cycle();
    model.due_cycle = until_ - skipped_;
    model.targets.clear();
    model.uneventful_until = 0;
    if (gear_ != Gear::DETAILED) return;  // nothing that they would count is counted
    for (const Selection& selection : selections_) {
        if (!contains(selection.levels, level_)) continue;
        const uint64_t now = sum(selection.probes, selection.levels);
        const uint64_t remaining = selection.due - std::min(now, selection.due);
        if (selection.probes == bit(Probe::CYCLES)) {
            model.due_cycle = std::min(model.due_cycle, cycle + std::min(remaining, ~cycle));
        } else if (selection.probes & ~DECODED) {
            const uint64_t before = sum(selection.probes);
            model.targets.push_back({selection.probes, before + std::min(remaining, ~before)});
        }
    }
    for (auto& bank : banks_) {
        for (const CounterBank::Armed& counter : bank->armed()) {
            if (counter.probes == bit(Probe::CYCLES)) {
                model.due_cycle = std::min(model.due_cycle, cycle + std::min(counter.remaining, ~cycle));
            } else if (counter.probes & ~DECODED || counter.probes & bit(Probe::CYCLES)) {
                const uint64_t before = sum(counter.probes);
                model.targets.push_back({counter.probes, before + std::min(counter.remaining, ~before)});
            }
        }
    }
}

uint64_t Core::user_cycles() const {
    if (!models_) return retired();
    return gear_ == Gear::DETAILED ? model_->pipeline->cycle() - model_->kernel_cycles : uncounted_from_.cycles;
}

uint64_t Core::cycles() const { return skipped_ + (model_ ? model_->pipeline->cycle() : retired() + elapsed_); }

const char* Core::address_way() const { return model_ ? model_->addresses->way() : "none"; }

void Core::elapse(uint64_t cycles) {
    if (!model_) {
        elapsed_ += cycles;
        return;
    }
    model_->pipeline->elapse(cycles);
    model_->kernel_cycles += cycles;
}

bool Core::work(uint64_t cycles) {
    elapse(cycles);
    worked_ += cycles;
    bool wrapped = false;
    for (auto& bank : banks_)
        if (bank->armed_for(Probe::CYCLES, Level::KERNEL)) wrapped |= bank->take_interrupt();
    return wrapped;
}

void Core::place_page(uint64_t address) {
    if (model_) model_->memory.place_page(address, model_->pipeline->cycle());
}

void Core::start_trace() {
    if (!models_) throw std::logic_error("a core without models sees no addresses");
    models_->tracing = true;
}

std::vector<TracedAccess> Core::take_trace() {
    if (!models_) throw std::logic_error("a core without models sees no addresses");
    return std::exchange(models_->trace, {});
}

}  // namespace perfemu
