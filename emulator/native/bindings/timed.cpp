// For tests: what the timing models see in code.
#include <nanobind/stl/string_view.h>

#include "bindings/bindings.hpp"
#include "ops/timed_op.hpp"

namespace nb = nanobind;

namespace perfemu {

template <size_t N>
static nb::list registers(const std::array<uint8_t, N>& numbers) {
    nb::list found;
    for (uint8_t reg : numbers)
        if (reg != timed_register::NONE) found.append(reg);
    return found;
}

static nb::object optional(uint8_t reg) { return reg == timed_register::NONE ? nb::none() : nb::cast(reg); }

static nb::list timed_decode(std::string_view isa, uint64_t address, nb::bytes code) {
    std::unique_ptr<TimedDecoder> decoder = TimedDecoder::make(isa);
    nb::list rows;
    for (const TimedOp& op : decoder->decode(address, {reinterpret_cast<const uint8_t*>(code.c_str()), code.size()})) {
        nb::dict row;
        row["offset"] = op.offset;
        row["length"] = op.length;
        row["op_class"] = static_cast<int>(op.op_class);
        row["branch"] = static_cast<int>(op.branch);
        row["width_bytes"] = op.width_bytes;
        row["sources"] = registers(op.sources);
        row["address_sources"] = registers(op.address_sources);
        row["destinations"] = registers(op.destinations);
        row["write_back"] = optional(op.write_back);
        row["accumulator"] = optional(op.accumulator);
        row["conditions"] = op.conditions;
        row["lanes_loaded"] = op.lanes_loaded;
        nb::list flags;
        auto flag = [&](bool set, const char* name) {
            if (set) flags.append(name);
        };
        flag(op.loads, "loads");
        flag(op.stores, "stores");
        flag(op.prefetches, "prefetches");
        flag(op.compares, "compares");
        flag(op.compare_only, "compare_only");
        flag(op.fuses_with_compare, "fuses_with_compare");
        flag(op.memory_or_immediate, "memory_or_immediate");
        flag(op.aes_round, "aes_round");
        flag(op.fuses_with_aes_round, "fuses_with_aes_round");
        flag(op.eliminable_move, "eliminable_move");
        flag(op.adds_little, "adds_little");
        flag(op.loads_whole, "loads_whole");
        flag(op.fuses_with_move, "fuses_with_move");
        flag(op.fuses_with_load, "fuses_with_load");
        flag(op.repeated, "repeated");
        flag(op.complex_address, "complex_address");
        flag(op.microcoded, "microcoded");
        flag(op.serializes, "serializes");
        row["flags"] = flags;
        rows.append(row);
    }
    return rows;
}

void bind_timed(nb::module_& module) {
    module.def("timed_decode", &timed_decode, nb::arg("isa"), nb::arg("address"), nb::arg("code"));
}

}  // namespace perfemu
