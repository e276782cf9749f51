#include "x87_state.hpp"

#include <array>
#include <span>

#include "../engine_linkage.hpp"

namespace perfemu {

bool X87::report_unmasked(const FloatContext& context) const {
    const uint8_t reported = context.reported();
    status() |= reported;
    if (reported & INEXACT_RESULT && context.rounded_up) status() |= CONDITION_1;
    status() |= ERROR_SUMMARY | BUSY;
    operand().abandoned = reported & context.unmasked & BEFORE_COMPUTATION;
    return !operand().abandoned;
}

bool X87::stack_fault(bool overflow) const {
    status() &= static_cast<uint16_t>(~CONDITION_1);
    status() |= static_cast<uint16_t>(INVALID_OPERATION) | STACK_FAULT | (overflow ? CONDITION_1 : 0);
    if (!(unmasked() & INVALID_OPERATION)) return true;
    status() |= ERROR_SUMMARY | BUSY;
    operand().abandoned = true;
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
    layout.control =
        calibration.find<uint16_t>("FPCW", CONTROLS, [&](uint16_t value) { set_control(environment, value); });
    constexpr std::array<uint16_t, 3> STATUSES = {0x4701, 0x0215, 0x4136};
    layout.status = calibration.find_register<uint16_t>("FPSW", UC_X86_REG_FPSW, STATUSES);
    constexpr std::array<uint32_t, 3> TOPS = {5, 3, 6};
    layout.top = calibration.find<uint32_t>("the top of x87's stack", TOPS, [&](uint32_t value) {
        initialize(environment);
        for (uint32_t i = 0; i < value; i++) increment(environment);
    });
    constexpr std::array<uint32_t, 3> TAGS = {0x01000100, 0x00010101, 0x01000000};  // of the first four
    layout.tags = calibration.find<uint32_t>("x87's tags", TAGS, [&](uint32_t value) {
        empty_all(environment);
        fill_all(environment);
        for (int i = 0; i < 4; i++)
            if (value >> 8 * i & 1) release(environment, i);
    });
    constexpr std::array<uint64_t, 3> SIGNIFICANDS = {0x9357'9bdf'0246'8ace, 0xdead'9876'1234'5678,
                                                      0xa5a5'1234'4321'a5a4};
    constexpr unsigned LAST = 7;  // the first to be pushed
    layout.registers = calibration.find<uint64_t>("x87's registers", SIGNIFICANDS, [&](uint64_t value) {
        initialize(environment);
        load(environment, static_cast<int64_t>(value >> 1));
    }) - LAST * sizeof(X87Slot);
    layout.last_instruction = calibration.find_register<uint64_t>("FIP", UC_X86_REG_FIP, SIGNIFICANDS);
    layout.last_code_segment = calibration.find_register<uint16_t>("FCS", UC_X86_REG_FCS, CONTROLS);
    constexpr std::array<uint64_t, 3> OPERANDS = {0x9357'9bdeull << 32, 0xdead'9876ull << 32, 0xa5a5'1234ull << 32};
    layout.operand = calibration.find<uint64_t>("x87's operand", OPERANDS, [&](uint64_t value) {
        load_operand(environment, static_cast<int32_t>(value >> 33));
    });
    initialize(environment);
}

}  // namespace perfemu
