// Instructions of one instruction set, told to a SliceBuilder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "slice/builder.hpp"

namespace perfemu::slice {

class SliceCompiler {
  public:
    virtual ~SliceCompiler() = default;

    // Of "aarch64" or "x86_64".
    static std::unique_ptr<SliceCompiler> make(std::string_view isa);

    Slice compile(uint64_t address, std::span<const uint8_t> bytes, Caution caution);

  protected:
    // Tells the builder what the instruction at the front of `bytes` does to registers, flags and memory: each register
    // that it writes must be set or forgotten. Returns its length; 0 if the bytes are no instruction. May be called
    // twice for one instruction.
    //
    // A REP is compiled as one iteration (the engine runs each as a block of its own, and that of its end accesses
    // nothing). An instruction that only prefetches or computes an address has no access.
    virtual unsigned compile_op(SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) = 0;
};

// Makes a compiler known under an instruction set's name: `static const SliceCompilerRow row{"aarch64", ...};`
struct SliceCompilerRow {
    using Make = std::unique_ptr<SliceCompiler> (*)();
    SliceCompilerRow(std::string_view isa, Make make);
};

}  // namespace perfemu::slice
