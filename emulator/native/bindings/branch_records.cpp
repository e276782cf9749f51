// Units that keep or send what they hear of retirement.
#include <nanobind/nanobind.h>

#include "bindings/bindings.hpp"
#include "bindings/state.hpp"
#include "units/branch_records.hpp"

namespace nb = nanobind;

namespace perfemu {

void bind_branch_records(nb::module_& module) {
    nb::class_<BranchRecords, RetirementListener>(module, "BranchRecords")
        .def(nb::init<size_t>(), nb::arg("entries"))
        .def_prop_ro("size", &BranchRecords::size)
        .def_prop_rw("top", &BranchRecords::top, &BranchRecords::set_top)
        .def_prop_ro("recorded", &BranchRecords::recorded)
        .def("record", &BranchRecords::record, nb::arg("kinds"), nb::arg("as_stack") = false)
        .def("record_at", &BranchRecords::record_at, nb::arg("levels"))
        .def("note", &BranchRecords::note, nb::arg("cycles"), nb::arg("mispredictions"))
        .def("forget_time", &BranchRecords::forget_time)
        .def("pass_entry", &BranchRecords::pass_entry)
        .def("hide_others", &BranchRecords::hide_others)
        .def("clear", &BranchRecords::clear)
        .def("saved_state", &saved_state<BranchRecords>)
        .def("load_state", &load_state<BranchRecords>, nb::arg("saved"))
        .def(
            "read",
            [](BranchRecords& self, size_t number) {
                const BranchRecord& entry = self.entry(number);
                return nb::make_tuple(entry.from, entry.to, entry.cycles, static_cast<int>(entry.kind),
                                      entry.mispredicted, entry.timed, static_cast<int>(entry.level), entry.info,
                                      entry.cause, entry.has_from, entry.has_to);
            },
            nb::arg("number"))
        .def(
            "write",
            [](BranchRecords& self, size_t number, uint64_t from, uint64_t to, uint64_t cycles, int kind,
               bool mispredicted, bool timed, int level, uint64_t info, uint8_t cause, bool has_from, bool has_to) {
                self.entry(number) = {from,
                                      to,
                                      cycles,
                                      static_cast<BranchKind>(kind),
                                      mispredicted,
                                      timed,
                                      static_cast<Level>(level),
                                      info,
                                      cause,
                                      has_from,
                                      has_to};
            },
            nb::arg("number"), nb::arg("from_address"), nb::arg("to_address"), nb::arg("cycles"), nb::arg("kind"),
            nb::arg("mispredicted"), nb::arg("timed"), nb::arg("level") = 0, nb::arg("info") = 0, nb::arg("cause") = 0,
            nb::arg("has_from") = true, nb::arg("has_to") = true);
}

}  // namespace perfemu
