// OpSampler for Python, as emulator/_native.pyi declares it.
#include <nanobind/nanobind.h>

#include "bindings/bindings.hpp"
#include "core/core.hpp"
#include "units/op_sampler.hpp"

namespace nb = nanobind;

namespace perfemu {

static nb::tuple row_of(const OpSampler& sampler) {
    const RetiredOp& op = sampler.op;
    nb::object address = op.address_known ? nb::object(nb::int_(op.address)) : nb::none();
    return nb::make_tuple(op.pc, op.next, mask_int(op.fired), address, op.size,
                          static_cast<int>(level_that_answered(op.fired)), op.cycle, op.dispatched, op.completed,
                          op.walked, op.waited, static_cast<int>(sampler.level));
}

void bind_sampling(nb::module_& module) {
    nb::class_<OpSampler>(module, "OpSampler")
        .def(nb::init<Core&>(), nb::arg("core"), nb::keep_alive<1, 2>())
        .def(
            "start",
            [](OpSampler& self, nb::int_ probes, uint64_t distance, nb::int_ wanted, uint64_t period, unsigned bits) {
                self.start({probe_mask(probes), probe_mask(wanted), distance, period, bits});
            },
            nb::arg("probes"), nb::arg("distance"), nb::arg("wanted") = nb::int_(0), nb::arg("period") = 0,
            nb::arg("random_bits") = 0)
        .def("stop", &OpSampler::stop)
        .def("random", &OpSampler::random, nb::arg("bits"))
        .def_prop_ro("counted", &OpSampler::counted)
        .def_prop_ro("left", &OpSampler::left)
        .def_prop_rw("sequence", &OpSampler::sequence, &OpSampler::set_sequence)
        .def_rw("valid", &OpSampler::valid)
        .def_prop_ro("op", &row_of);
}

}  // namespace perfemu
