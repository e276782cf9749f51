// A listener for Python: it counts, and keeps what it is told of if it is asked to, or writes it to a file.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/core.hpp"
#include "core/retirement.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

class RetirementRecorder final : public RetirementListener {
  public:
    explicit RetirementRecorder(bool keeps) : keeps_(keeps) { wants_class = keeps; }

    void branch(const RetiredBranch& branch) override {
        branches++;
        taken += branch.taken;
        if (keeps_) branches_.push_back(branch);
        if (descriptor_ >= 0 && branch.taken) write({branch.from, branch.to});
    }
    void trace_written(const TraceWrite& written) override {
        if (keeps_) trace_writes_.push_back({written, branches});
    }
    Reaction selected(const RetiredOp& op) override {
        if (probes_ == bit(Probe::CYCLES) && !distances_.empty() && !tags_next_) {
            tags_next_ = true;
            return {.probes = bit(Probe::INST_RETIRED), .distance = 1};
        }
        tags_next_ = false;
        selections++;
        if (keeps_) selected_.push_back(op);
        if (descriptor_ >= 0) write_selected(op);
        if (distances_.empty()) return {.distance = period_};
        if (followed_ == distances_.size()) return {};
        return {.probes = probes_, .distance = distances_[followed_++], .from_now = from_now_};
    }

    void select(Core& core, ProbeMask probes, uint64_t period) {
        core.select(*this, probes, period);
        core_ = &core;
        probes_ = probes;
        period_ = period;
        distances_.clear();
        written_ = core.sum(probes);
    }
    // The instruction behind so many events, then the one behind so many more, and so on; counted `from_now`, when one
    // is selected, rather than from where it was due. Of cycles it is the next one that retires.
    void follow(Core& core, ProbeMask probes, std::vector<uint64_t> distances, bool from_now) {
        if (distances.empty()) return;
        core.select(*this, probes, distances[0]);
        core_ = &core;
        probes_ = probes;
        period_ = 0;
        distances_ = std::move(distances);
        followed_ = 1;
        from_now_ = from_now;
        tags_next_ = false;
    }

    nb::list take_branches() {
        nb::list rows;
        for (const RetiredBranch& branch : std::exchange(branches_, {}))
            rows.append(nb::make_tuple(branch.from, branch.to, branch.cycle, static_cast<int>(branch.kind),
                                       branch.taken, branch.mispredicted));
        return rows;
    }
    nb::list take_trace_writes() {
        nb::list rows;
        for (const auto& [written, before] : std::exchange(trace_writes_, {}))
            rows.append(nb::make_tuple(written.pc, written.value, written.bytes, written.cycle, before));
        return rows;
    }
    nb::list take_selected() {
        nb::list rows;
        for (const RetiredOp& op : std::exchange(selected_, {})) {
            nb::object address = op.address_known ? nb::object(nb::int_(op.address)) : nb::none();
            rows.append(nb::make_tuple(op.pc, op.next, static_cast<int>(op.op_class), static_cast<int>(op.branch),
                                       address, op.size, static_cast<int>(level_that_answered(op.fired)), op.cycle,
                                       op.cycles, mask_int(op.fired), op.dispatched, op.completed, op.walked,
                                       op.waited));
        }
        return rows;
    }

    void write_to(int descriptor, bool whole) {
        descriptor_ = descriptor;
        writes_whole_ = whole;
    }
    void flush() {
        const auto* at = reinterpret_cast<const char*>(words_.data());
        size_t left = words_.size() * sizeof words_[0];
        while (left) {
            const ssize_t written = ::write(descriptor_, at, left);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) throw std::system_error(errno, std::generic_category(), "what has retired");
            at += written;
            left -= static_cast<size_t>(written);
        }
        words_.clear();
    }

    uint64_t branches = 0, taken = 0, selections = 0;

  private:
    static constexpr size_t WORDS_AT_ONCE = 1 << 16;

    void write_selected(const RetiredOp& op) {
        if (!writes_whole_) return write_address(op.pc);
        constexpr ProbeMask WORD = ~uint64_t{0};
        const uint64_t physical = op.address_known ? core_->physical(op.address).value_or(0) : 0;
        const auto level = static_cast<uint64_t>(level_that_answered(op.fired));
        write({op.pc, op.next, op.address, physical, op.cycle, op.dispatched, op.issued, op.completed, op.walked,
               op.waited, static_cast<uint64_t>(op.fired & WORD), static_cast<uint64_t>(op.fired >> 64),
               op.size | level << 16 | static_cast<uint64_t>(op.branch) << 24 | uint64_t{op.address_known} << 32});
    }
    // Once for each event, if each is selected: a fetch of two lines is two.
    void write_address(uint64_t pc) {
        if (period_ != 1) return write({pc});
        const uint64_t now = core_->sum(probes_);
        for (; written_ < now; written_++) write({pc});
    }
    void write(std::initializer_list<uint64_t> words) {
        words_.insert(words_.end(), words);
        if (words_.size() >= WORDS_AT_ONCE) flush();
    }

    bool keeps_;
    bool writes_whole_ = false;
    int descriptor_ = -1;          // of a file that somebody else closes
    std::vector<uint64_t> words_;  // that are not there yet
    std::vector<RetiredBranch> branches_;
    std::vector<std::pair<TraceWrite, uint64_t>> trace_writes_;  // and branches before it
    std::vector<RetiredOp> selected_;

    Core* core_ = nullptr;  // of what is selected
    ProbeMask probes_ = 0;
    uint64_t period_ = 0, written_ = 0;  // events that are selected; of which so many have been written
    std::vector<uint64_t> distances_;    // if they are followed: how far it is to each,
    size_t followed_ = 0;                // of which so many have been asked for
    bool from_now_ = false, tags_next_ = false;
};

}  // namespace

void bind_retirement(nb::module_& module, nb::class_<Core>& core) {
    nb::class_<RetirementListener>(module, "RetirementListener");
    nb::class_<RetirementRecorder, RetirementListener>(module, "RetirementRecorder")
        .def(nb::init<bool>(), nb::arg("keep") = false)
        .def_ro("branches", &RetirementRecorder::branches)
        .def_ro("taken", &RetirementRecorder::taken)
        .def_ro("selections", &RetirementRecorder::selections)
        .def("write_to", &RetirementRecorder::write_to, nb::arg("descriptor"), nb::arg("whole") = false)
        .def("flush", &RetirementRecorder::flush)
        .def("take_branches", &RetirementRecorder::take_branches)
        .def("take_trace_writes", &RetirementRecorder::take_trace_writes)
        .def("take_selected", &RetirementRecorder::take_selected);
    core.def(
            "listen", [](Core& self, RetirementListener& listener) { self.listen(listener); }, nb::arg("listener"),
            nb::keep_alive<1, 2>())
        .def(
            "select",
            [](Core& self, RetirementRecorder& recorder, nb::int_ probes, uint64_t period) {
                recorder.select(self, probe_mask(probes), period);
            },
            nb::arg("recorder"), nb::arg("probes"), nb::arg("period"), nb::keep_alive<1, 2>())
        .def(
            "follow",
            [](Core& self, RetirementRecorder& recorder, nb::int_ probes, std::vector<uint64_t> distances,
               bool from_now) { recorder.follow(self, probe_mask(probes), std::move(distances), from_now); },
            nb::arg("recorder"), nb::arg("probes"), nb::arg("distances"), nb::arg("from_now") = false,
            nb::keep_alive<1, 2>())
        .def(
            "stop_listening", [](Core& self, RetirementListener& listener) { self.stop_listening(listener); },
            nb::arg("listener"));
}

}  // namespace perfemu
