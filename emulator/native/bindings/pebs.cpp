// PEBS for Python: where it writes, and of which counters.
#include "units/pebs.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/writable_memory.hpp"
#include "core/core.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

// That of one bank of counters.
class PebsUnit {
  public:
    PebsUnit(Core& core, CounterBank& bank, std::shared_ptr<ShownCycles> clock) : pebs_(core, bank, std::move(clock)) {}

    void begin(const Pebs::Settings& settings, nb::handle area, nb::handle buffer, BranchRecords* branches) {
        auto area_memory = std::make_unique<WritableMemory>(area);
        auto buffer_memory = std::make_unique<WritableMemory>(buffer);
        const std::span<uint8_t> bytes = area_memory->bytes();
        if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t))
            throw std::invalid_argument("a DS area is aligned to 8 bytes");
        pebs_.begin(settings, {reinterpret_cast<uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t)},
                    buffer_memory->bytes(), branches);
        area_ = std::move(area_memory);
        buffer_ = std::move(buffer_memory);
    }
    void end() {
        pebs_.end();
        area_.reset();
        buffer_.reset();
    }
    bool buffer_overflowed() const { return pebs_.buffer_overflowed; }
    void set_buffer_overflowed(bool overflowed) { pebs_.buffer_overflowed = overflowed; }

  private:
    std::unique_ptr<WritableMemory> area_, buffer_;
    Pebs pebs_;
};

}  // namespace

void bind_pebs(nb::module_& module) {
    nb::class_<PebsUnit>(module, "Pebs")
        .def(nb::init<Core&, CounterBank&, std::shared_ptr<ShownCycles>>(), nb::arg("core"), nb::arg("bank"),
             nb::arg("clock"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "begin",
            [](PebsUnit& self, nb::handle area, nb::handle buffer, BranchRecords* branches, uint64_t counters,
               uint64_t slow_loads, uint64_t latency, unsigned general, unsigned resets, bool adaptive,
               uint64_t with_groups, uint64_t config, uint64_t tsc_at_start) {
                self.begin({.counters = counters,
                            .slow_loads = slow_loads,
                            .latency = latency,
                            .general = general,
                            .resets = resets,
                            .adaptive = adaptive,
                            .with_groups = with_groups,
                            .config = config,
                            .tsc_at_start = tsc_at_start},
                           area, buffer, branches);
            },
            nb::kw_only(), nb::arg("area"), nb::arg("buffer"), nb::arg("branches").none(), nb::arg("counters"),
            nb::arg("slow_loads"), nb::arg("latency"), nb::arg("general"), nb::arg("resets"), nb::arg("adaptive"),
            nb::arg("with_groups"), nb::arg("config"), nb::arg("tsc_at_start"), nb::keep_alive<1, 4>())
        .def("end", &PebsUnit::end)
        .def_prop_rw("buffer_overflowed", &PebsUnit::buffer_overflowed, &PebsUnit::set_buffer_overflowed);
}

}  // namespace perfemu
