// For tests and comparisons: a loop's instructions on a fresh pipeline, memory system and branch unit, no engine.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "probes.hpp"
#include "timing/pipeline.hpp"

namespace nb = nanobind;

namespace perfemu {
namespace {

// A site's address in iteration i is start + (i * stride) % modulo; a modulo of 0 is none.
struct AddressPattern {
    uint64_t start = 0, stride = 0, modulo = 0;
    std::vector<uint64_t> listed;  // instead: one after the other, and from the beginning again

    uint64_t in(uint64_t iteration) const {
        if (!listed.empty()) return listed[iteration % listed.size()];
        uint64_t offset = iteration * stride;
        return start + (modulo ? offset % modulo : offset);
    }
};

struct Loop {
    uint64_t address;
    std::vector<TimedOp> ops;
    std::vector<AccessSite> sites;
    std::vector<AddressPattern> patterns;  // by site
    std::vector<bool> taken;               // the last branch, in one iteration after the other
    std::vector<unsigned> pieces;          // how many instructions are handed over at once, in turn; none: an iteration
    unsigned repeats = 1;                  // iterations of each REP
};

// Sites that the ops imply, if nobody gives them.
std::vector<AccessSite> implied_sites(const std::vector<TimedOp>& ops) {
    std::vector<AccessSite> sites;
    for (size_t index = 0; index < ops.size(); ++index) {
        const TimedOp& op = ops[index];
        unsigned stored = 0;
        for (uint8_t source : op.sources) stored += source != timed_register::NONE;
        bool pair = op.stores && op.op_class == OpClass::NONE && stored > 1;
        auto number = static_cast<uint16_t>(index);
        if (op.loads || op.prefetches)
            sites.push_back({.op = number,
                             .size = static_cast<uint16_t>(op.width_bytes * std::max<unsigned>(1, op.lanes_loaded)),
                             .load = true});
        if (op.stores)
            sites.push_back(
                {.op = number, .size = static_cast<uint16_t>(op.width_bytes * (pair ? stored : 1)), .store = true});
    }
    return sites;
}

class Run {
  public:
    Run(const Config& config, const Loop& loop)
        : loop_(loop), totals_(PROBE_COUNT), memory_(config, std::make_shared<SharedMemory>(config), totals_.data()),
          branches_(config, totals_.data()), pipeline_(Pipeline::make(config, memory_, branches_, totals_.data())) {}

    void go(uint64_t iterations) {
        size_t piece = 0;
        unsigned count = static_cast<unsigned>(loop_.ops.size());
        for (uint64_t iteration = 0; iteration < iterations; ++iteration) {
            bool taken = loop_.taken[iteration % loop_.taken.size()];
            for (unsigned first = 0; first < count;) {
                unsigned last = count;
                if (!loop_.pieces.empty()) last = std::min(count, first + loop_.pieces[piece++ % loop_.pieces.size()]);
                for (unsigned index = first; index < last; ++index)
                    if (loop_.ops[index].repeated) last = index == first ? index + 1 : index;
                hand_over(first, last, iteration, taken);
                first = last;
            }
        }
        pipeline_->elapse(0);
    }

    void settle() { pipeline_->settle(); }
    uint64_t cycles() const { return pipeline_->cycle(); }
    const std::vector<uint64_t>& totals() const { return totals_; }

  private:
    struct Piece {
        std::unique_ptr<PreparedBlock> block;
        unsigned first_site = 0, sites = 0;
    };

    void hand_over(unsigned first, unsigned last, uint64_t iteration, bool taken) {
        Piece& piece = prepared(first, last);
        addresses_.clear();
        for (unsigned site = 0; site < piece.sites; ++site)
            addresses_.push_back(loop_.patterns[piece.first_site + site].in(iteration));
        const TimedOp& end = loop_.ops[last - 1];
        uint64_t next = loop_.address + end.offset + end.length;
        if (last == loop_.ops.size() && taken && end.branch != BranchKind::NONE) next = loop_.address;
        if (loop_.ops[first].repeated)
            for (unsigned repeat = 0; repeat < loop_.repeats; ++repeat)
                pipeline_->iterate(*piece.block, addresses_.data());
        pipeline_->retire_whole(*piece.block, addresses_.data(), next);
    }

    Piece& prepared(unsigned first, unsigned last) {
        Piece& piece = pieces_[{first, last}];
        if (piece.block) return piece;
        std::vector<TimedOp> ops(loop_.ops.begin() + first, loop_.ops.begin() + last);
        uint16_t offset = ops[0].offset;
        for (TimedOp& op : ops) op.offset = static_cast<uint16_t>(op.offset - offset);
        std::vector<AccessSite> sites;
        for (AccessSite site : loop_.sites) {
            if (site.op < first) piece.first_site++;
            if (site.op < first || site.op >= last) continue;
            site.op = static_cast<uint16_t>(site.op - first);
            sites.push_back(site);
        }
        piece.sites = static_cast<unsigned>(sites.size());
        piece.block = pipeline_->prepare(loop_.address + offset, ops, sites);
        return piece;
    }

    const Loop& loop_;
    std::vector<uint64_t> totals_;
    MemorySystem memory_;
    BranchUnit branches_;
    std::unique_ptr<Pipeline> pipeline_;
    std::map<std::pair<unsigned, unsigned>, Piece> pieces_;
    std::vector<uint64_t> addresses_;
};

template <size_t N>
void set_registers(std::array<uint8_t, N>& registers, nb::handle list) {
    size_t next = 0;
    for (nb::handle item : list) {
        if (next == N) throw nb::value_error("an op has no place for so many registers");
        registers[next++] = nb::cast<uint8_t>(item);
    }
}

// The form that timed_decode gives; what is missing is as in an empty TimedOp, of four bytes.
TimedOp op_of(nb::dict row, unsigned& offset) {
    static const std::map<std::string, bool TimedOp::*> flags = {
        {"loads", &TimedOp::loads},
        {"stores", &TimedOp::stores},
        {"prefetches", &TimedOp::prefetches},
        {"compares", &TimedOp::compares},
        {"compare_only", &TimedOp::compare_only},
        {"fuses_with_compare", &TimedOp::fuses_with_compare},
        {"memory_or_immediate", &TimedOp::memory_or_immediate},
        {"aes_round", &TimedOp::aes_round},
        {"fuses_with_aes_round", &TimedOp::fuses_with_aes_round},
        {"eliminable_move", &TimedOp::eliminable_move},
        {"adds_little", &TimedOp::adds_little},
        {"loads_whole", &TimedOp::loads_whole},
        {"fuses_with_move", &TimedOp::fuses_with_move},
        {"fuses_with_load", &TimedOp::fuses_with_load},
        {"repeated", &TimedOp::repeated},
        {"complex_address", &TimedOp::complex_address},
        {"microcoded", &TimedOp::microcoded},
        {"serializes", &TimedOp::serializes},
    };
    TimedOp op;
    op.length = 4;
    for (auto [name, value] : row) {
        auto key = nb::cast<std::string>(name);
        if (key == "offset")
            offset = nb::cast<unsigned>(value);
        else if (key == "length")
            op.length = nb::cast<uint8_t>(value);
        else if (key == "op_class")
            op.op_class = static_cast<OpClass>(nb::cast<int>(value));
        else if (key == "branch")
            op.branch = static_cast<BranchKind>(nb::cast<int>(value));
        else if (key == "width_bytes")
            op.width_bytes = nb::cast<uint8_t>(value);
        else if (key == "lanes_loaded")
            op.lanes_loaded = nb::cast<uint8_t>(value);
        else if (key == "sources")
            set_registers(op.sources, value);
        else if (key == "address_sources")
            set_registers(op.address_sources, value);
        else if (key == "destinations")
            set_registers(op.destinations, value);
        else if (key == "write_back")
            op.write_back = value.is_none() ? timed_register::NONE : nb::cast<uint8_t>(value);
        else if (key == "accumulator")
            op.accumulator = value.is_none() ? timed_register::NONE : nb::cast<uint8_t>(value);
        else if (key == "flags")
            for (nb::handle flag : value) {
                auto found = flags.find(nb::cast<std::string>(flag));
                if (found == flags.end()) throw nb::value_error("an op has no such flag");
                op.*found->second = true;
            }
        else
            throw nb::value_error(("an op has no '" + key + "'").c_str());
    }
    op.offset = static_cast<uint16_t>(offset);
    offset += op.length;
    return op;
}

AddressPattern pattern_of(nb::handle given) {
    AddressPattern pattern;
    if (nb::isinstance<nb::tuple>(given)) {
        auto [start, stride, modulo] = nb::cast<std::tuple<uint64_t, uint64_t, uint64_t>>(given);
        pattern = {start, stride, modulo, {}};
    } else {
        pattern.listed = nb::cast<std::vector<uint64_t>>(given);
        if (pattern.listed.empty()) throw nb::value_error("a site's list of addresses is empty");
    }
    return pattern;
}

nb::dict run(nb::dict config, Loop& loop, uint64_t iterations, std::optional<nb::list> addresses,
             std::optional<std::vector<unsigned>> sizes) {
    loop.sites = implied_sites(loop.ops);
    // Each instruction has a line of its own.
    for (const AccessSite& site : loop.sites) loop.patterns.push_back({0x100000 + 64 * uint64_t{site.op}, 0, 0, {}});
    auto same_count = [&](size_t count, const char* what) {
        if (count != loop.sites.size())
            throw std::invalid_argument(std::string(what) + ": " + std::to_string(count) + ", but the loop has " +
                                        std::to_string(loop.sites.size()) + " memory operands");
    };
    if (sizes) {
        same_count(sizes->size(), "sizes");
        for (size_t index = 0; index < sizes->size(); ++index)
            loop.sites[index].size = static_cast<uint16_t>((*sizes)[index]);
    }
    if (addresses) {
        same_count(addresses->size(), "addresses");
        for (size_t index = 0; index < addresses->size(); ++index)
            loop.patterns[index] = pattern_of((*addresses)[index]);
    }
    if (loop.ops.empty()) throw nb::value_error("a loop of no instructions");
    tell_what_follows(loop.ops);
    if (loop.taken.empty()) loop.taken = {true};
    for (unsigned piece : loop.pieces)
        if (piece == 0) throw nb::value_error("a piece of no instructions");
    Run fresh(config_of(config), loop);
    {
        nb::gil_scoped_release released;
        fresh.go(iterations);
    }
    nb::dict answer;
    fresh.settle();
    answer["cycles"] = fresh.cycles();
    answer["totals"] = fresh.totals();
    return answer;
}

nb::dict simulate(std::string_view isa, nb::dict config, nb::bytes code, uint64_t iterations,
                  std::optional<nb::list> addresses, std::optional<std::vector<unsigned>> sizes,
                  std::vector<bool> taken, std::vector<unsigned> pieces, unsigned repeats, uint64_t address) {
    Loop loop{.address = address, .taken = std::move(taken), .pieces = std::move(pieces), .repeats = repeats};
    loop.ops = TimedDecoder::make(isa)->decode(address, {reinterpret_cast<const uint8_t*>(code.c_str()), code.size()});
    return run(config, loop, iterations, addresses, sizes);
}

nb::dict simulate_ops(nb::dict config, nb::list ops, uint64_t iterations, std::optional<nb::list> addresses,
                      std::optional<std::vector<unsigned>> sizes, std::vector<bool> taken, std::vector<unsigned> pieces,
                      unsigned repeats, uint64_t address) {
    Loop loop{.address = address, .taken = std::move(taken), .pieces = std::move(pieces), .repeats = repeats};
    unsigned offset = 0;
    for (nb::handle row : ops) loop.ops.push_back(op_of(nb::cast<nb::dict>(row), offset));
    return run(config, loop, iterations, addresses, sizes);
}

}  // namespace

void bind_timing(nb::module_& module) {
    module.def("pipeline_names", &Pipeline::names);
    module.def("simulate", &simulate, nb::arg("isa"), nb::arg("config"), nb::arg("code"), nb::arg("iterations"),
               nb::arg("addresses") = nb::none(), nb::arg("sizes") = nb::none(),
               nb::arg("taken") = std::vector<bool>{true}, nb::arg("pieces") = std::vector<unsigned>{},
               nb::arg("repeats") = 1, nb::arg("address") = 0x10000);
    module.def("simulate_ops", &simulate_ops, nb::arg("config"), nb::arg("ops"), nb::arg("iterations"),
               nb::arg("addresses") = nb::none(), nb::arg("sizes") = nb::none(),
               nb::arg("taken") = std::vector<bool>{true}, nb::arg("pieces") = std::vector<unsigned>{},
               nb::arg("repeats") = 1, nb::arg("address") = 0x10000);
}

}  // namespace perfemu
