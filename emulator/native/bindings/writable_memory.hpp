// Memory of a Python object that can be written, as long as this is there.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>

namespace perfemu {

class WritableMemory {
  public:
    explicit WritableMemory(nanobind::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_WRITABLE)) throw nanobind::python_error();
    }
    ~WritableMemory() { PyBuffer_Release(&buffer_); }
    WritableMemory(const WritableMemory&) = delete;
    WritableMemory& operator=(const WritableMemory&) = delete;
    std::span<uint8_t> bytes() const { return {static_cast<uint8_t*>(buffer_.buf), static_cast<size_t>(buffer_.len)}; }

  private:
    Py_buffer buffer_{};
};

}  // namespace perfemu
