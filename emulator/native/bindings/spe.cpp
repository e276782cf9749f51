// SpeSampler for Python, as emulator/_native.pyi declares it.
#include <nanobind/nanobind.h>

#include "bindings/bindings.hpp"
#include "units/spe_sampler.hpp"

namespace nb = nanobind;

namespace perfemu {

static nb::tuple take(SpeSampler& sampler) {
    const SpeSampler::Records records = sampler.take();
    nb::list cycles;
    for (const uint64_t cycle : records.cycles) cycles.append(cycle);
    const auto* bytes = reinterpret_cast<const char*>(records.bytes.data());
    return nb::make_tuple(nb::bytes(bytes, records.bytes.size()), cycles);
}

static void start(SpeSampler& sampler, uint64_t distance, uint64_t interval, bool jitter, uint64_t room,
                  uint64_t wanted, unsigned packets, unsigned types, uint64_t events, uint64_t no_events,
                  uint64_t min_latency, unsigned filters, unsigned levels, uint64_t ram_base,
                  uint32_t context_register) {
    sampler.start({.distance = distance,
                   .interval = interval,
                   .jitter = jitter,
                   .room = room,
                   .wanted = wanted,
                   .packets = packets,
                   .types = types,
                   .filters = filters,
                   .events = events,
                   .no_events = no_events,
                   .min_latency = min_latency,
                   .levels = static_cast<LevelMask>(levels),
                   .ram_base = ram_base,
                   .context_register = context_register});
}

void bind_spe(nb::module_& module) {
    nb::class_<SpeSampler>(module, "SpeSampler")
        .def(nb::init<Core&>(), nb::arg("core"), nb::keep_alive<1, 2>())
        .def("start", &start, nb::kw_only(), nb::arg("distance"), nb::arg("interval"), nb::arg("jitter"),
             nb::arg("room"), nb::arg("wanted"), nb::arg("packets"), nb::arg("types"), nb::arg("events"),
             nb::arg("no_events"), nb::arg("min_latency"), nb::arg("filters"), nb::arg("levels"), nb::arg("ram_base"),
             nb::arg("context_register"))
        .def("stop", &SpeSampler::stop)
        .def("take", &take)
        .def_ro("full", &SpeSampler::full)
        .def_ro("lost", &SpeSampler::lost)
        .def_ro("samples", &SpeSampler::samples)
        .def_rw("collided", &SpeSampler::collided)
        .def_rw("sequence", &SpeSampler::sequence)
        .def_rw("context", &SpeSampler::context);
}

}  // namespace perfemu
