// A listener for Python: it counts, and keeps what it is told of if it is asked to, or writes it to a file.
#include <nanobind/nanobind.h>
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
        selections++;
        if (keeps_) selected_.push_back(op);
        if (descriptor_ >= 0) write({op.pc});
        return {.distance = period};
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

    void write_to(int descriptor) { descriptor_ = descriptor; }
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
    uint64_t period = 0;  // of what is selected for it

  private:
    static constexpr size_t WORDS_AT_ONCE = 1 << 16;

    void write(std::initializer_list<uint64_t> words) {
        words_.insert(words_.end(), words);
        if (words_.size() >= WORDS_AT_ONCE) flush();
    }

    bool keeps_;
    int descriptor_ = -1;          // of a file that somebody else closes
    std::vector<uint64_t> words_;  // that are not there yet
    std::vector<RetiredBranch> branches_;
    std::vector<std::pair<TraceWrite, uint64_t>> trace_writes_;  // and branches before it
    std::vector<RetiredOp> selected_;
};

}  // namespace

void bind_retirement(nb::module_& module, nb::class_<Core>& core) {
    nb::class_<RetirementListener>(module, "RetirementListener");
    nb::class_<RetirementRecorder, RetirementListener>(module, "RetirementRecorder")
        .def(nb::init<bool>(), nb::arg("keep") = false)
        .def_ro("branches", &RetirementRecorder::branches)
        .def_ro("taken", &RetirementRecorder::taken)
        .def_ro("selections", &RetirementRecorder::selections)
        .def("write_to", &RetirementRecorder::write_to, nb::arg("descriptor"))
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
                recorder.period = period;
                self.select(recorder, probe_mask(probes), period);
            },
            nb::arg("recorder"), nb::arg("probes"), nb::arg("period"), nb::keep_alive<1, 2>())
        .def(
            "stop_listening", [](Core& self, RetirementListener& listener) { self.stop_listening(listener); },
            nb::arg("listener"));
}

}  // namespace perfemu
