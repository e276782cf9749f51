#include "instructions/x87_state.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>

#include "engine/linkage.hpp"

namespace perfemu {

bool X87::report_unmasked(X87 x87, const FloatContext& context) {
    const uint8_t reported = context.reported();
    x87.status() |= reported;
    if (reported & INEXACT_RESULT && context.rounded_up) x87.status() |= CONDITION_1;
    x87.status() |= ERROR_SUMMARY | BUSY;
    x87.operand().abandoned = reported & context.unmasked & BEFORE_COMPUTATION;
    return !x87.operand().abandoned;
}

bool X87::note_stack_fault(X87 x87, bool overflow) {
    x87.status() &= static_cast<uint16_t>(~CONDITION_1);
    x87.status() |= static_cast<uint16_t>(INVALID_OPERATION) | STACK_FAULT | (overflow ? CONDITION_1 : 0);
    if (!(x87.unmasked() & INVALID_OPERATION)) return true;
    x87.status() |= ERROR_SUMMARY | BUSY;
    x87.operand().abandoned = true;
    return false;
}

void X87::summarize() const {
    status() &= static_cast<uint16_t>(~(ERROR_SUMMARY | BUSY));
    if (status() & unmasked()) status() |= ERROR_SUMMARY | BUSY;
}

void calibrate_x87(const Calibration& calibration) {
    Environment* const environment = calibration.environment();
    void (*initialize)(Environment*) = nullptr;
    void (*empty_all)(Environment*) = nullptr;
    void (*fill_all)(Environment*) = nullptr;
    void (*increment)(Environment*) = nullptr;
    void (*release)(Environment*, int) = nullptr;
    void (*set_control)(Environment*, uint32_t) = nullptr;
    void (*load)(Environment*, int64_t) = nullptr;
    void (*load_operand)(Environment*, int32_t) = nullptr;
    find_in_engine(initialize, "helper_fninit");
    find_in_engine(empty_all, "helper_emms");
    find_in_engine(fill_all, "helper_enter_mmx");
    find_in_engine(increment, "helper_fincstp");
    find_in_engine(release, "helper_ffree_STN");
    find_in_engine(set_control, "helper_fldcw");
    find_in_engine(load, "helper_fildll_ST0");
    find_in_engine(load_operand, "helper_fildl_FT0");
    X87Layout& layout = x87_layout;

    constexpr std::array<uint16_t, 3> CONTROLS = {0x37f, 0x1a55, 0xe6a};
    const size_t control =
        calibration.find<uint16_t>("FPCW", CONTROLS, [&](uint16_t value) { set_control(environment, value); });
    constexpr std::array<uint16_t, 3> STATUSES = {0x4701, 0x0215, 0x4136};
    const size_t status = calibration.find_register<uint16_t>("FPSW", UC_X86_REG_FPSW, STATUSES);
    constexpr std::array<uint32_t, 3> TOPS = {5, 3, 6};
    const size_t top = calibration.find<uint32_t>("the top of x87's stack", TOPS, [&](uint32_t value) {
        initialize(environment);
        for (uint32_t i = 0; i < value; i++) increment(environment);
    });
    constexpr std::array<uint32_t, 3> TAGS = {0x01000100, 0x00010101, 0x01000000};  // of the first four
    const size_t tags = calibration.find<uint32_t>("x87's tags", TAGS, [&](uint32_t value) {
        empty_all(environment);
        fill_all(environment);
        for (int i = 0; i < 4; i++)
            if (value >> 8 * i & 1) release(environment, i);
    });
    constexpr std::array<uint64_t, 3> SIGNIFICANDS = {0x9357'9bdf'0246'8ace, 0xdead'9876'1234'5678,
                                                      0xa5a5'1234'4321'a5a4};
    constexpr unsigned LAST = 7;  // the first to be pushed
    const size_t registers = calibration.find<uint64_t>("x87's registers", SIGNIFICANDS, [&](uint64_t value) {
        initialize(environment);
        load(environment, static_cast<int64_t>(value >> 1));
    }) - LAST * sizeof(X87Slot);
    const size_t state = layout.state = top - offsetof(X87State, top);
    if (status != state + offsetof(X87State, status) || control != state + offsetof(X87State, control) ||
        tags != state + offsetof(X87State, tags) || registers != state + offsetof(X87State, registers))
        throw std::runtime_error("this Unicorn keeps x87's registers where 2.1.4 does not");
    layout.last_instruction = calibration.find_register<uint64_t>("FIP", UC_X86_REG_FIP, SIGNIFICANDS);
    layout.last_code_segment = calibration.find_register<uint16_t>("FCS", UC_X86_REG_FCS, CONTROLS);
    constexpr std::array<uint64_t, 3> OPERANDS = {0x9357'9bdeull << 32, 0xdead'9876ull << 32, 0xa5a5'1234ull << 32};
    layout.operand = calibration.find<uint64_t>("x87's operand", OPERANDS, [&](uint64_t value) {
        load_operand(environment, static_cast<int32_t>(value >> 33));
    });
    initialize(environment);
}

}  // namespace perfemu
