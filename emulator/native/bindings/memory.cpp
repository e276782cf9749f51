// The Python faces of PhysicalMemory, AddressTranslation and AddressSpace, as emulator/_native.pyi declares them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings/bindings.hpp"
#include "bindings/state.hpp"
#include "memory/guest_page_tables.hpp"
#include "memory/memory.hpp"

namespace nb = nanobind;

namespace perfemu {

static nb::object read(const AddressTranslation& space, uint64_t address, uint64_t size) {
    nb::object bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!bytes.is_valid()) throw nb::python_error();
    uint64_t done = space.read(address, {reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(bytes.ptr())), size});
    return done == size ? bytes : nb::int_(address + done);
}

// The bytes of a Python object, for as long as this exists.
class BytesOf {
  public:
    explicit BytesOf(nb::handle data) {
        if (PyObject_GetBuffer(data.ptr(), &buffer_, PyBUF_SIMPLE)) throw nb::python_error();
    }
    ~BytesOf() { PyBuffer_Release(&buffer_); }
    BytesOf(const BytesOf&) = delete;
    BytesOf& operator=(const BytesOf&) = delete;

    std::span<const uint8_t> span() const {
        return {static_cast<const uint8_t*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
    }

  private:
    Py_buffer buffer_;
};

static uint64_t write(AddressTranslation& space, uint64_t address, nb::handle data) {
    return space.write(address, BytesOf(data).span());
}

static uint64_t write_permitted(AddressTranslation& space, uint64_t address, nb::handle data) {
    return space.write_permitted(address, BytesOf(data).span());
}

static void write_frame(PhysicalMemory& memory, Frame frame, uint64_t offset, nb::handle data) {
    memory.write(frame, offset, BytesOf(data).span());
}

static nb::object read_string(const AddressTranslation& space, uint64_t address, uint64_t limit) {
    std::string text;
    while (text.size() < limit) {
        uint64_t at = address + text.size();
        const uint8_t* host = space.host(at);
        if (!host) return nb::int_(at);
        size_t room = std::min(limit - text.size(), PAGE_SIZE - (at & PAGE_MASK));
        size_t length = strnlen(reinterpret_cast<const char*>(host), room);
        text.append(reinterpret_cast<const char*>(host), length);
        if (length < room) break;
    }
    return nb::bytes(text.data(), text.size());
}

static nb::object read_u64(const AddressTranslation& space, uint64_t address) {
    uint64_t value;
    if (space.read(address, {reinterpret_cast<uint8_t*>(&value), sizeof value}) < sizeof value) return nb::none();
    return nb::int_(value);
}

static nb::object view(PhysicalMemory& memory, Frame frame, uint32_t count) {
    memory.check(frame, count);
    auto* host = reinterpret_cast<char*>(memory.host(frame));
    return nb::steal(PyMemoryView_FromMemory(host, static_cast<Py_ssize_t>(count * PAGE_SIZE), PyBUF_WRITE));
}

static nb::object frame_and_protection(const Page& page) {
    if (!page.present) return nb::none();
    return nb::make_tuple(page.frame, page.protection);
}

static nb::tuple walk(const GuestPageTables& tables, uint64_t address, std::optional<unsigned> level) {
    if (level && *level >= LEVELS) throw nb::index_error("no such privilege level");
    const PageWalk walk = tables.walk(address, level ? static_cast<Level>(*level) : tables.level());
    nb::list descriptors;
    for (unsigned i = 0; i < walk.reads; i++) descriptors.append(walk.descriptors[i]);
    return nb::make_tuple(frame_and_protection(walk.page), static_cast<int>(walk.fault), walk.level,
                          nb::tuple(descriptors), walk.output);
}

void bind_memory(nb::module_& module) {
    module.attr("PAGE_SIZE") = PAGE_SIZE;

    nb::class_<PhysicalMemory>(module, "PhysicalMemory")
        .def(nb::init<uint64_t>(), nb::arg("size_bytes"))
        .def_prop_ro("size_bytes", &PhysicalMemory::size_bytes)
        .def_prop_ro("used_bytes", &PhysicalMemory::used_bytes)
        .def("allocate", &PhysicalMemory::allocate, nb::arg("count") = 1)
        .def("reserve", &PhysicalMemory::reserve, nb::arg("bytes"))
        .def("retain", &PhysicalMemory::retain, nb::arg("frame"), nb::arg("count") = 1)
        .def("release", &PhysicalMemory::release, nb::arg("frame"), nb::arg("count") = 1)
        .def("references", &PhysicalMemory::references, nb::arg("frame"))
        .def("saved_state", &saved_state<PhysicalMemory>)
        .def("load_state", &load_state<PhysicalMemory>, nb::arg("state"))
        .def(
            "next_used",
            [](const PhysicalMemory& memory, uint64_t first) {
                const PhysicalMemory::Stretch stretch = memory.next_used(first);
                return nb::make_tuple(stretch.first, stretch.count);
            },
            nb::arg("first"))
        .def("map_file", &PhysicalMemory::map_file, nb::arg("descriptor"), nb::arg("offset"), nb::arg("first"),
             nb::arg("count"))
        .def("write", &write_frame, nb::arg("frame"), nb::arg("offset"), nb::arg("data"))
        .def("view", &view, nb::arg("frame"), nb::arg("count") = 1, nb::keep_alive<0, 1>());

    nb::class_<AddressTranslation>(module, "AddressTranslation")
        .def("set_breakpoint", &AddressTranslation::set_breakpoint, nb::arg("address"))
        .def("clear_breakpoint", &AddressTranslation::clear_breakpoint, nb::arg("address"))
        .def("read", &read, nb::arg("address"), nb::arg("size"))
        .def("write", &write, nb::arg("address"), nb::arg("data"))
        .def("write_permitted", &write_permitted, nb::arg("address"), nb::arg("data"))
        .def("read_string", &read_string, nb::arg("address"), nb::arg("limit"))
        .def("read_u64", &read_u64, nb::arg("address"))
        .def(
            "lookup",
            [](const AddressTranslation& space, uint64_t address) -> nb::object {
                return frame_and_protection(space.lookup(address));
            },
            nb::arg("address"));

    nb::class_<AddressSpace, AddressTranslation>(module, "AddressSpace")
        .def(nb::init<std::shared_ptr<PhysicalMemory>>(), nb::arg("memory"))
        .def("map", &AddressSpace::map, nb::arg("address"), nb::arg("frame"), nb::arg("count"), nb::arg("protection"))
        .def("unmap", &AddressSpace::unmap, nb::arg("address"), nb::arg("count"))
        .def("protect", &AddressSpace::protect, nb::arg("address"), nb::arg("count"), nb::arg("protection"))
        .def("present", &AddressSpace::present, nb::arg("address"), nb::arg("count"))
        .def("present_pages", &AddressSpace::present_pages)
        .def("fork", &AddressSpace::fork);

    nb::class_<GuestPageTables, AddressTranslation>(module, "GuestPageTables")
        .def("walk", &walk, nb::arg("address"), nb::arg("level") = nb::none());
}

}  // namespace perfemu
