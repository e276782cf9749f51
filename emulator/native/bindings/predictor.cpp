// The Python face of BranchUnit, for tests and experiments, as emulator/_native.pyi declares it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings/bindings.hpp"
#include "predictor/branch_unit.hpp"
#include "probes.hpp"

namespace nb = nanobind;

namespace perfemu {

// With the totals that a core would own.
struct LoneBranchUnit {
    explicit LoneBranchUnit(nb::dict config) : totals(PROBE_COUNT), unit(config_of(config), totals.data()) {}

    std::vector<uint64_t> totals;
    BranchUnit unit;
};

static Prediction resolve(LoneBranchUnit& lone, uint64_t pc, unsigned kind, uint64_t next, uint64_t fallthrough) {
    if (kind > static_cast<unsigned>(BranchKind::RETURN)) throw nb::index_error("no such branch kind");
    return lone.unit.resolve(pc, static_cast<BranchKind>(kind), next, fallthrough);
}

// Four 64-bit numbers a branch: pc, kind, next, fallthrough.
static nb::bytes resolve_all(LoneBranchUnit& lone, nb::bytes stream) {
    static constexpr size_t ROW_BYTES = 4 * sizeof(uint64_t);
    std::string predictions(stream.size() / ROW_BYTES, '\0');
    for (size_t branch = 0; branch < predictions.size(); branch++) {
        uint64_t row[4];
        memcpy(row, stream.c_str() + branch * ROW_BYTES, ROW_BYTES);
        predictions[branch] = static_cast<char>(resolve(lone, row[0], static_cast<unsigned>(row[1]), row[2], row[3]));
    }
    return nb::bytes(predictions.data(), predictions.size());
}

void bind_predictor(nb::module_& module) {
    nb::class_<LoneBranchUnit>(module, "BranchUnit")
        .def(nb::init<nb::dict>(), nb::arg("config"))
        .def(
            "resolve",
            [](LoneBranchUnit& lone, uint64_t pc, unsigned kind, uint64_t next, uint64_t fallthrough) {
                return static_cast<int>(resolve(lone, pc, kind, next, fallthrough));
            },
            nb::arg("pc"), nb::arg("kind"), nb::arg("next"), nb::arg("fallthrough"))
        .def("resolve_all", &resolve_all, nb::arg("stream"))
        .def(
            "total", [](const LoneBranchUnit& lone, unsigned probe) { return lone.totals.at(probe); },
            nb::arg("probe"));
    module.def("direction_predictors", &DirectionPredictor::names);
    module.def("indirect_predictors", &IndirectPredictor::names);
}

}  // namespace perfemu
