// The branch trace store for Python: where it writes, and whether it interrupts.
#include "units/branch_trace_store.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/writable_memory.hpp"
#include "core/core.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

// That of one core.
class BtsUnit {
  public:
    explicit BtsUnit(Core& core) : core_(core), store_([&core] { core.request_interrupt(); }) {}
    ~BtsUnit() { core_.stop_listening(store_); }
    BtsUnit(const BtsUnit&) = delete;
    BtsUnit& operator=(const BtsUnit&) = delete;

    void begin(nb::handle area, nb::handle buffer, bool interrupts, LevelMask levels) {
        auto area_memory = std::make_unique<WritableMemory>(area);
        auto buffer_memory = std::make_unique<WritableMemory>(buffer);
        const std::span<uint8_t> bytes = area_memory->bytes();
        if (bytes.size() < 4 * sizeof(uint64_t) || reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t))
            throw std::invalid_argument("a DS area is aligned, and has 32 bytes at least for BTS");
        store_.begin({reinterpret_cast<uint64_t*>(bytes.data()), 4}, buffer_memory->bytes(), interrupts);
        area_ = std::move(area_memory);
        buffer_ = std::move(buffer_memory);
        store_.wanted.levels = levels;
        core_.listen(store_);
    }
    void end() {
        core_.stop_listening(store_);
        store_.end();
        area_.reset();
        buffer_.reset();
    }
    BranchTraceStore& store() { return store_; }

  private:
    Core& core_;
    BranchTraceStore store_;
    std::unique_ptr<WritableMemory> area_, buffer_;
};

}  // namespace

void bind_branch_trace_store(nb::module_& module) {
    nb::class_<BtsUnit>(module, "BranchTraceStore")
        .def(nb::init<Core&>(), nb::arg("core"), nb::keep_alive<1, 2>())
        .def("begin", &BtsUnit::begin, nb::arg("area"), nb::arg("buffer"), nb::arg("interrupts"),
             nb::arg("levels") = EVERY_LEVEL)
        .def("end", &BtsUnit::end)
        .def_prop_ro("interrupt_pending", [](BtsUnit& self) { return self.store().interrupt_pending(); })
        .def("clear_interrupt", [](BtsUnit& self) { self.store().clear_interrupt(); });
}

}  // namespace perfemu
