// The x87 registers of an x86-64 engine, and what every x87 instruction does before and after it computes.
#pragma once

#include "instructions/environment.hpp"
#include "instructions/exceptions.hpp"
#include "instructions/normal_numbers.hpp"
#include "instructions/soft_float.hpp"

namespace perfemu {

// Bits of the status word besides FloatException's, which are its first.
enum X87Status : uint16_t {
    STACK_FAULT = 0x40,
    ERROR_SUMMARY = 0x80,
    CONDITION_0 = 0x100,
    CONDITION_1 = 0x200,
    CONDITION_2 = 0x400,
    TOP = 0x3800,  // the engine keeps it elsewhere
    CONDITION_3 = 0x4000,
    BUSY = 0x8000,
    ORDER_CONDITIONS = CONDITION_0 | CONDITION_2 | CONDITION_3,
};

struct X87Layout {
    size_t state = 0;
    size_t last_instruction = 0, last_code_segment = 0;
    size_t operand = 0;  // FT0: where a translation has an instruction's second operand
};
inline X87Layout x87_layout;
void calibrate_x87(const Calibration& calibration);

// A register, or the second operand. Translations call several helpers for an instruction: to fetch that operand, to
// compute, to pop. What the later ones have to know of the earlier ones stands behind it, where the engine has nothing.
struct X87Slot {
    uint64_t significand;
    uint16_t sign_exponent;
    bool empty;      // came from an empty register
    bool denormal;   // was, in the format it was read in
    bool pushes;     // the result is a new top
    bool abandoned;  // with an error summary: the instruction that made it has no result and no pop

    Extended value() const { return {significand, sign_exponent}; }
};
static_assert(sizeof(X87Slot) == 16);

// What the engine keeps together, and what comes before, so that the registers are aligned.
struct X87State {
    uint32_t others[3];
    uint32_t top;
    uint16_t status, control;
    uint8_t tags[8];  // 1: empty
    X87Slot registers[8];
};

class X87 {
  public:
    // Of an instruction that waits: raises #MF where an exception is pending. `return_address`: the helper's.
    X87(Environment* environment, uintptr_t return_address) : X87(environment) {
        if (status() & ERROR_SUMMARY) [[unlikely]]
            raise_exception(environment, Vector8664::FLOATING_POINT, return_address);
    }
    // Of one that does not, or of the later helpers of an instruction.
    explicit X87(Environment* environment)
        : environment_(environment), state_(&field<X87State>(environment, x87_layout.state)) {}

    uint16_t& status() const { return state_->status; }
    uint16_t& control() const { return state_->control; }
    uint32_t& top() const { return state_->top; }
    uint8_t* tags() const { return state_->tags; }
    X87Slot& operand() const { return field<X87Slot>(environment_, x87_layout.operand); }
    uint64_t& last_instruction() const { return field<uint64_t>(environment_, x87_layout.last_instruction); }
    uint16_t last_code_segment() const { return field<uint16_t>(environment_, x87_layout.last_code_segment); }
    X87Slot& physical(unsigned number) const { return state_->registers[number]; }

    bool empty(unsigned i) const { return tags()[(top() + i) & 7]; }
    Extended get(unsigned i) const { return physical((top() + i) & 7).value(); }
    void set(unsigned i, Extended value) const {
        const unsigned number = (top() + i) & 7;
        put(physical(number), value);
        tags()[number] = 0;
    }
    // Of a register that is not empty.
    void replace(unsigned i, Extended value) const { put(physical((top() + i) & 7), value); }
    static void put(X87Slot& slot, Extended value) {
        slot.significand = value.significand;
        slot.sign_exponent = value.sign_exponent;
    }
    void push(Extended value) const {
        top() = (top() - 1) & 7;
        set(0, value);
    }
    void pop() const {
        tags()[top()] = 1;
        top() = (top() + 1) & 7;
    }

    uint16_t status_word() const { return static_cast<uint16_t>((status() & ~TOP) | top() << 11); }
    // Every exception is masked, results are of 64 bits and rounded to nearest: as FNINIT leaves it.
    bool is_default() const {
        constexpr uint16_t ROUNDING_AND_PRECISION = 0xf00, ALL_BITS = 0x300;
        return (control() & (ROUNDING_AND_PRECISION | ALL_FLOAT_EXCEPTIONS)) == (ALL_BITS | ALL_FLOAT_EXCEPTIONS);
    }
    uint8_t unmasked() const { return static_cast<uint8_t>(~control() & ALL_FLOAT_EXCEPTIONS); }
    FloatContext context() const {
        static constexpr uint8_t PRECISIONS[] = {24, 64, 53, 64};  // the second is reserved
        return {.rounding = static_cast<Rounding>(control() >> 10 & 3),
                .nan_rule = NanRule::LARGER_SIGNIFICAND,
                .precision = PRECISIONS[control() >> 8 & 3],
                .unmasked = unmasked(),
                .scales_unmasked = true};
    }
    // The same without precision control, which is of addition, multiplication, division and square root alone.
    FloatContext whole_context() const {
        FloatContext context = this->context();
        context.precision = 64;
        return context;
    }

    // Begins an instruction's own part.
    void begin() const { status() &= static_cast<uint16_t>(~CONDITION_1); }
    // For the last helper of an instruction that waits: no earlier one leaves it an error summary.
    bool abandoned() const { return status() & ERROR_SUMMARY && operand().abandoned; }
    // Reports what `context` raised. False where the instruction leaves its operands as they are.
    bool report(const FloatContext& context) const {
        if (context.raised & context.unmasked) [[unlikely]]
            return report_unmasked(*this, context);
        const bool rounded_up = context.raised & INEXACT_RESULT && context.rounded_up;
        status() |= static_cast<uint16_t>(context.raised | (rounded_up ? CONDITION_1 : 0));
        return true;
    }
    // Begins and reports at once, of a result that raised nothing or was inexact, where that is masked.
    void begin_with(const NormalResult& result) const {
        const uint16_t reported = (result.inexact ? INEXACT_RESULT : 0) | (result.up ? CONDITION_1 : 0);
        status() = static_cast<uint16_t>((status() & ~CONDITION_1) | reported);
    }
    // An empty source or no empty destination. False where the instruction leaves everything as it is, else its result
    // is the indefinite value.
    bool stack_fault(bool overflow) const { return note_stack_fault(*this, overflow); }
    // The summary of what is pending under the present masks.
    void summarize() const;

  private:
    // Of a copy, so that what does not come here needs no address.
    static bool note_stack_fault(X87 x87, bool overflow);
    static bool report_unmasked(X87 x87, const FloatContext& context);

    Environment* environment_;
    X87State* state_;
};

}  // namespace perfemu

// In a helper: the registers, for an instruction that waits.
#define WAITING_X87(environment) X87(environment, HELPER_RETURN_ADDRESS())
