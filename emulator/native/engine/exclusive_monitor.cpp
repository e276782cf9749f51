#include "engine/exclusive_monitor.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace perfemu {
namespace {

constexpr uint64_t CODE = 0x1000, DATA = 0x5A5A'4000, PAGE_BYTES = 0x1000;
constexpr uint64_t CLOSED = ~uint64_t{0};
constexpr uint32_t LOAD_EXCLUSIVE = 0xC85F7C20, CLEAR = 0xD5033F5F;  // ldxr x0, [x1]; clrex

struct ContextFree {
    void operator()(uc_context* context) const { uc_context_free(context); }
};

uint64_t value_at(const uc_context* context, size_t offset) {
    uint64_t value;
    std::memcpy(&value, reinterpret_cast<const uint8_t*>(context) + offset, sizeof value);
    return value;
}

// Where a saved context has the address of the open monitor, which follows what is executed.
size_t find_offset() {
    struct Trial {
        uint32_t instruction;
        uint64_t address, leaves;
    };
    constexpr Trial TRIALS[] = {{LOAD_EXCLUSIVE, DATA + 0x40, DATA + 0x40},
                                {CLEAR, 0, CLOSED},
                                {LOAD_EXCLUSIVE, DATA + 0x80, DATA + 0x80},
                                {LOAD_EXCLUSIVE, DATA + 0xC8, DATA + 0xC8},
                                {CLEAR, DATA + 0xC8, CLOSED}};
    uc_engine* engine = nullptr;
    if (uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &engine) != UC_ERR_OK) throw std::runtime_error("uc_open");
    std::unique_ptr<uc_engine, uc_err (*)(uc_engine*)> closes(engine, uc_close);
    uc_context* saved = nullptr;
    if (uc_context_alloc(engine, &saved) != UC_ERR_OK) throw std::runtime_error("uc_context_alloc");
    std::unique_ptr<uc_context, ContextFree> frees(saved);
    uc_mem_map(engine, CODE, PAGE_BYTES, UC_PROT_ALL);
    uc_mem_map(engine, DATA, PAGE_BYTES, UC_PROT_ALL);
    std::vector<size_t> candidates;
    for (size_t at = 0; at + sizeof CLOSED <= uc_context_size(engine); at += sizeof CLOSED) candidates.push_back(at);
    uint64_t pc = CODE;
    for (const Trial& trial : TRIALS) {
        uc_mem_write(engine, pc, &trial.instruction, sizeof trial.instruction);
        uc_reg_write(engine, UC_ARM64_REG_X1, &trial.address);
        if (uc_emu_start(engine, pc, pc + sizeof trial.instruction, 0, 1) != UC_ERR_OK)
            throw std::runtime_error("the engine does not run exclusive loads");
        uc_context_save(engine, saved);
        // X1 says the same where the monitor is open, and goes on saying it where it is closed again.
        std::erase_if(candidates, [&](size_t at) { return value_at(saved, at) != trial.leaves; });
        pc += sizeof trial.instruction;
    }
    if (candidates.size() != 1)
        throw std::runtime_error("this Unicorn keeps its exclusive monitor where 2.1.4 does not");
    return candidates[0];
}

size_t offset() {
    static const size_t found = find_offset();
    return found;
}

}  // namespace

bool monitor_open(const uc_context* saved) { return value_at(saved, offset()) != CLOSED; }

void close_monitor(uc_context* saved) {
    std::memcpy(reinterpret_cast<uint8_t*>(saved) + offset(), &CLOSED, sizeof CLOSED);
}

}  // namespace perfemu
