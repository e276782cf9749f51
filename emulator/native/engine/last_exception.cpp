#include "engine/last_exception.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace perfemu {
namespace {

constexpr uint64_t CODE = 0x1000, PAGE_BYTES = 0x1000;
constexpr uint8_t DIVIDE_BY_ZERO[] = {0x31, 0xc0, 0xf7, 0xf0};  // xor eax, eax; div eax

struct ContextFree {
    void operator()(uc_context* context) const { uc_context_free(context); }
};
using Context = std::unique_ptr<uc_context, ContextFree>;

Context save(uc_engine* engine) {
    uc_context* context = nullptr;
    if (uc_context_alloc(engine, &context) != UC_ERR_OK || uc_context_save(engine, context) != UC_ERR_OK)
        throw std::runtime_error("the engine's context cannot be saved");
    return Context(context);
}

void stop(uc_engine* engine, uint32_t, void*) { uc_emu_stop(engine); }

// Where a saved context has the last exception (QEMU's old_exception): none (-1), then a divide error (0), then a
// double fault (8).
size_t find_offset() {
    constexpr int32_t VALUES[] = {-1, 0, 8};
    uc_engine* engine = nullptr;
    if (uc_open(UC_ARCH_X86, UC_MODE_64, &engine) != UC_ERR_OK) throw std::runtime_error("uc_open");
    std::unique_ptr<uc_engine, uc_err (*)(uc_engine*)> closes(engine, uc_close);
    uc_hook hook;
    uc_mem_map(engine, CODE, PAGE_BYTES, UC_PROT_ALL);
    uc_mem_write(engine, CODE, DIVIDE_BY_ZERO, sizeof DIVIDE_BY_ZERO);
    uc_hook_add(engine, &hook, UC_HOOK_INTR, reinterpret_cast<void*>(stop), nullptr, 1, 0);
    std::vector<size_t> candidates;
    for (int32_t value : VALUES) {
        if (value != VALUES[0]) uc_emu_start(engine, CODE, 0, 0, 0);
        Context context = save(engine);
        auto has = [&](size_t at) {
            int32_t found;
            std::memcpy(&found, reinterpret_cast<const uint8_t*>(context.get()) + at, sizeof found);
            return found == value;
        };
        if (value == VALUES[0])
            for (size_t at = 0; at + sizeof value <= uc_context_size(engine); at += sizeof value)
                candidates.push_back(at);
        std::erase_if(candidates, [&](size_t at) { return !has(at); });
    }
    if (candidates.size() != 1) throw std::runtime_error("this Unicorn keeps its last exception where 2.1.4 does not");
    return candidates[0];
}

}  // namespace

void forget_last_exception(uc_engine* engine) {
    static const size_t offset = find_offset();
    constexpr int32_t NONE = -1;
    Context context = save(engine);
    std::memcpy(reinterpret_cast<uint8_t*>(context.get()) + offset, &NONE, sizeof NONE);
    uc_context_restore(engine, context.get());
}

}  // namespace perfemu
