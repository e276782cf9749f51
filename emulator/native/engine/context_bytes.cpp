#include "engine/context_bytes.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace perfemu {
namespace {

struct ContextFree {
    void operator()(uc_context* context) const { uc_context_free(context); }
};

// A saved context has a head of the library's own, which begins with how many bytes of registers follow it.
constexpr uint64_t LONGEST_HEAD = 64;

}  // namespace

void archive_context(uc_engine* engine, Archive& state) {
    uc_context* allocated = nullptr;
    if (uc_context_alloc(engine, &allocated) != UC_ERR_OK) throw std::runtime_error("uc_context_alloc");
    std::unique_ptr<uc_context, ContextFree> context(allocated);
    if (uc_context_save(engine, allocated) != UC_ERR_OK) throw std::runtime_error("uc_context_save");
    auto* const bytes = reinterpret_cast<uint8_t*>(allocated);
    const uint64_t all = uc_context_size(engine);
    uint64_t registers;
    std::memcpy(&registers, bytes, sizeof registers);
    if (registers >= all || all - registers > LONGEST_HEAD)
        throw std::runtime_error("this Unicorn keeps its registers where 2.1.4 does not");
    state.raw(bytes + (all - registers), registers);
    if (state.is_loading() && uc_context_restore(engine, allocated) != UC_ERR_OK)
        throw std::runtime_error("uc_context_restore");
}

}  // namespace perfemu
