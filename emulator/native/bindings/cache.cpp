// The memory systems of some cores for Python, as emulator/_native.pyi declares them: what the unit tests feed.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>

#include "bindings/bindings.hpp"
#include "cache/memory_system.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

// An access in a stream, as struct.pack("<QQQIHH") makes it.
struct Record {
    uint64_t address;
    uint64_t pc;
    uint64_t cycle;
    uint32_t size;
    uint16_t kind;
    uint16_t core;
};
static_assert(sizeof(Record) == 32);

enum Kind : uint16_t { LOAD, STORE, FETCH, PREFETCH, KINDS };

struct Peers {
    Peers(const Peers&) = delete;
    Peers(nb::dict tables, unsigned cores) : config(config_of(tables)), totals(cores) {
        auto shared = std::make_shared<SharedMemory>(config, cores);
        for (auto& counts : totals) {
            counts.fill(0);
            memories.push_back(std::make_unique<MemorySystem>(config, shared, counts.data()));
        }
    }

    MemorySystem& memory(unsigned core) {
        if (core >= memories.size())
            throw std::out_of_range("core " + std::to_string(core) + " is not one of " +
                                    std::to_string(memories.size()));
        return *memories[core];
    }

    uint64_t access(const Record& record, uint64_t cycle) {
        MemorySystem& memory = *memories[record.core];
        switch (record.kind) {
            case LOAD: return memory.load(record.address, record.size, record.pc, cycle);
            case STORE: return memory.store(record.address, record.size, record.pc, cycle);
            case FETCH: return memory.fetch(record.address, cycle);
            default: memory.prefetch(record.address, record.pc, cycle); return cycle;
        }
    }

    Config config;
    std::vector<std::array<uint64_t, PROBE_COUNT>> totals;
    std::vector<std::unique_ptr<MemorySystem>> memories;
};

}  // namespace

static nb::bytes run(Peers& peers, nb::bytes packed, bool chained) {
    size_t count = packed.size() / sizeof(Record);
    if (count * sizeof(Record) != packed.size())
        throw std::invalid_argument("records: " + std::to_string(packed.size()) + " bytes are not records of 32");
    const auto* records = static_cast<const Record*>(packed.data());
    for (size_t index = 0; index < count; ++index)
        if (records[index].core >= peers.memories.size() || records[index].kind >= KINDS || !records[index].size)
            throw std::invalid_argument("record " + std::to_string(index) + ": core, kind or size is out of range");
    nb::object result = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * 8)));
    if (!result.is_valid()) throw nb::python_error();
    char* ready = PyBytes_AS_STRING(result.ptr());
    uint64_t last = 0;
    for (size_t index = 0; index < count; ++index) {
        last = peers.access(records[index], records[index].cycle + (chained ? last : 0));
        memcpy(ready + 8 * index, &last, 8);
    }
    return nb::cast<nb::bytes>(result);
}

void bind_cache(nb::module_& module) {
    nb::class_<Peers>(module, "MemorySystem")
        .def(nb::init<nb::dict, unsigned>(), nb::arg("config"), nb::arg("cores") = 1)
        .def(
            "load",
            [](Peers& peers, unsigned core, uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle,
               uint32_t elements) { return peers.memory(core).load(address, size, pc, cycle, elements); },
            nb::arg("core"), nb::arg("address"), nb::arg("size"), nb::arg("pc") = 0, nb::arg("cycle") = 0,
            nb::arg("elements") = 1)
        .def(
            "store",
            [](Peers& peers, unsigned core, uint64_t address, uint32_t size, uint64_t pc, uint64_t cycle,
               uint32_t elements) { return peers.memory(core).store(address, size, pc, cycle, elements); },
            nb::arg("core"), nb::arg("address"), nb::arg("size"), nb::arg("pc") = 0, nb::arg("cycle") = 0,
            nb::arg("elements") = 1)
        .def(
            "fetch",
            [](Peers& peers, unsigned core, uint64_t address, uint64_t cycle) {
                return peers.memory(core).fetch(address, cycle);
            },
            nb::arg("core"), nb::arg("address"), nb::arg("cycle") = 0)
        .def(
            "prefetch",
            [](Peers& peers, unsigned core, uint64_t address, uint64_t pc, uint64_t cycle) {
                peers.memory(core).prefetch(address, pc, cycle);
            },
            nb::arg("core"), nb::arg("address"), nb::arg("pc") = 0, nb::arg("cycle") = 0)
        .def(
            "place_page",
            [](Peers& peers, unsigned core, uint64_t address, uint64_t cycle) {
                peers.memory(core).place_page(address, cycle);
            },
            nb::arg("core"), nb::arg("address"), nb::arg("cycle") = 0)
        .def("run", &run, nb::arg("records"), nb::arg("chained") = false)
        .def(
            "totals",
            [](Peers& peers, unsigned core) {
                peers.memory(core);
                return std::vector<uint64_t>(peers.totals[core].begin(), peers.totals[core].end());
            },
            nb::arg("core") = 0);
    module.def("replacement_policies", &Replacement::Row::names);
    module.def("prefetchers", &Prefetcher::Row::names);
}

}  // namespace perfemu
