// AArch64's address slices.
#include <cstring>

#include "aarch64/dataflow.hpp"
#include "slice/compiler.hpp"

namespace perfemu::aarch64 {
namespace {

class Compiler final : public slice::SliceCompiler {
  protected:
    unsigned compile_op(slice::SliceBuilder& builder, uint64_t pc, std::span<const uint8_t> bytes) override {
        uint32_t word = 0;
        if (bytes.size() < sizeof word) return 0;
        std::memcpy(&word, bytes.data(), sizeof word);
        InstructionDataflow(builder, row_of(word), pc, word).build();
        return sizeof word;
    }
};

const slice::SliceCompilerRow ROW{"aarch64", [] { return std::unique_ptr<slice::SliceCompiler>(new Compiler); }};

}  // namespace
}  // namespace perfemu::aarch64
