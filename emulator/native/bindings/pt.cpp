// Intel PT's encoder for Python: settings, memory to write to, and where it is there.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/state.hpp"
#include "bindings/writable_memory.hpp"
#include "core/core.hpp"
#include "shown_cycles.hpp"
#include "units/pt_encoder.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

// The encoder of one core.
class PtUnit {
  public:
    PtUnit(Core& core, std::shared_ptr<ShownCycles> clock)
        : core_(core), encoder_(std::move(clock), [&core] { core.request_interrupt(); }) {}
    ~PtUnit() { core_.stop_listening(encoder_); }
    PtUnit(const PtUnit&) = delete;
    PtUnit& operator=(const PtUnit&) = delete;

    void set_output(const std::vector<std::tuple<nb::object, bool, bool>>& regions, size_t region, uint64_t offset) {
        std::vector<std::unique_ptr<WritableMemory>> held;
        std::vector<TraceRegion> found;
        for (const auto& [memory, interrupts, stops] : regions) {
            held.push_back(std::make_unique<WritableMemory>(memory));
            found.push_back({held.back()->bytes(), interrupts, stops});
        }
        encoder_.output.begin(std::move(found), region, offset);
        held_ = std::move(held);
    }
    void begin(const PtSettings& settings, uint64_t bytes_since_psb) {
        const std::optional<ExecutionPlace> place = core_.execution_place();
        if (!place) core_.interrupt_path();
        encoder_.begin(settings, bytes_since_psb, core_.cycles(), place);
        core_.listen(encoder_);
    }
    void end() {
        const std::optional<ExecutionPlace> place = core_.execution_place();
        if (!place) core_.interrupt_path();
        encoder_.end(core_.cycles(), place);
        stop();
    }
    // What goes on then is this trace.
    void go_on(const PtSettings& settings) {
        encoder_.set(settings);
        core_.listen(encoder_);
    }
    // ... which has not ended.
    void stop() {
        core_.stop_listening(encoder_);
        encoder_.output.forget();
        held_.clear();
    }
    void sleep() {
        if (!core_.execution_place()) core_.interrupt_path();
        encoder_.sleep(core_.last_retired_pc(), core_.cycles());
    }
    void wake(uint8_t reason) { encoder_.wake(core_.cycles(), reason); }
    PtEncoder& encoder() { return encoder_; }
    const PtEncoder& encoder() const { return encoder_; }

  private:
    Core& core_;
    PtEncoder encoder_;
    std::vector<std::unique_ptr<WritableMemory>> held_;
};

}  // namespace

void bind_pt(nb::module_& module) {
    nb::class_<PtSettings>(module, "PtSettings")
        .def(nb::init<>())
        .def_rw("branches", &PtSettings::branches)
        .def_rw("compresses_returns", &PtSettings::compresses_returns)
        .def_rw("tsc", &PtSettings::tsc)
        .def_rw("mtc", &PtSettings::mtc)
        .def_rw("cyc", &PtSettings::cyc)
        .def_rw("ptwrite", &PtSettings::ptwrite)
        .def_rw("ptwrite_addresses", &PtSettings::ptwrite_addresses)
        .def_rw("bytes_between_psbs", &PtSettings::bytes_between_psbs)
        .def_rw("mtc_shift", &PtSettings::mtc_shift)
        .def_rw("cyc_threshold", &PtSettings::cyc_threshold)
        .def_rw("tsc_at_start", &PtSettings::tsc_at_start)
        .def_rw("tsc_ticks", &PtSettings::tsc_ticks)
        .def_rw("ctc_ticks", &PtSettings::ctc_ticks)
        .def_rw("levels", &PtSettings::levels)
        .def_rw("only_cr3", &PtSettings::only_cr3, nb::arg().none())
        .def_rw("power", &PtSettings::power)
        .def_rw("core_hz", &PtSettings::core_hz)
        .def_rw("bus_hz", &PtSettings::bus_hz)
        .def(
            "add_range",
            [](PtSettings& self, uint64_t first, uint64_t last, bool stops) {
                self.ranges.push_back({first, last, stops});
            },
            nb::arg("first"), nb::arg("last"), nb::arg("stops"));
    nb::class_<PtUnit>(module, "PtEncoder")
        .def(nb::init<Core&, std::shared_ptr<ShownCycles>>(), nb::arg("core"), nb::arg("clock"), nb::keep_alive<1, 2>())
        .def("set_output", &PtUnit::set_output, nb::arg("regions"), nb::arg("region"), nb::arg("offset"))
        .def("begin", &PtUnit::begin, nb::arg("settings"), nb::arg("bytes_since_psb"))
        .def("end", &PtUnit::end)
        .def("stop", &PtUnit::stop)
        .def("go_on", &PtUnit::go_on, nb::arg("settings"))
        .def("saved_state", [](PtUnit& self) { return saved_state(self.encoder()); })
        .def(
            "load_state", [](PtUnit& self, nb::bytes saved) { load_state(self.encoder(), saved); }, nb::arg("saved"))
        .def("sleep", &PtUnit::sleep)
        .def("wake", &PtUnit::wake, nb::arg("reason"))
        .def_prop_ro("region", [](const PtUnit& self) { return self.encoder().output.region(); })
        .def_prop_ro("offset", [](const PtUnit& self) { return self.encoder().output.offset(); })
        .def_prop_ro(
            "stopped",
            [](const PtUnit& self) { return self.encoder().output.stopped() || self.encoder().has_met_stop(); })
        .def_prop_ro("interrupt_pending", [](const PtUnit& self) { return self.encoder().interrupt_pending(); })
        .def_prop_ro("interrupt_asserted", [](const PtUnit& self) { return self.encoder().interrupt_asserted(); })
        .def("take_interrupt", [](PtUnit& self) { self.encoder().take_interrupt(); })
        .def(
            "set_interrupt", [](PtUnit& self, bool pending) { self.encoder().set_interrupt(pending); },
            nb::arg("pending"))
        .def_prop_ro("bytes_since_psb", [](const PtUnit& self) { return self.encoder().bytes_since_psb(); })
        .def_prop_ro("in_context", [](const PtUnit& self) { return self.encoder().in_context(); })
        .def_prop_ro("in_filter", [](const PtUnit& self) { return self.encoder().in_filter(); });
}

}  // namespace perfemu
