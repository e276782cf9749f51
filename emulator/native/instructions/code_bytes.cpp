#include "instructions/code_bytes.hpp"

#include <algorithm>

#include "ops/op.hpp"

namespace perfemu {
namespace {

struct Presented {
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes;
    uint64_t size, address, last;
};
thread_local Presented presented{};

uint32_t (*engine_code_byte)(Environment*, uint64_t) = nullptr;

uint32_t code_byte(Environment* environment, uint64_t address) {
    const uint64_t at = address - presented.address;
    if (at >= presented.size) return engine_code_byte(environment, address);
    if (at == 0) engine_code_byte(environment, presented.last);
    return presented.bytes[at];
}

}  // namespace

void present_code(std::span<const uint8_t> bytes, uint64_t address, uint64_t last) {
    presented.size = std::min(bytes.size(), presented.bytes.size());
    std::copy_n(bytes.begin(), presented.size, presented.bytes.begin());
    presented.address = address;
    presented.last = last;
}

InstructionFamily code_bytes_family() {
    static const EngineReplacement REPLACEMENTS[] = {in_place_of("cpu_ldub_code", code_byte, &engine_code_byte)};
    return {REPLACEMENTS};
}

}  // namespace perfemu
