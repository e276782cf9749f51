#include "instructions/guest_memory.hpp"
#include "instructions/x87_moves.hpp"
#include "instructions/x87_state.hpp"

namespace perfemu {
namespace {

// The translation stores what a helper returns, and then pops. An exception that is not masked means no store: there is
// no way to tell the translation, so #MF comes here already, not with the next instruction that waits.
void abandon_store(Environment* environment, uintptr_t return_address) {
    raise_exception(environment, Vector8664::FLOATING_POINT, return_address);
}

// What the exceptions of a store are when one of them is not masked: the result is not rounded then.
bool report_store(const X87& x87, FloatContext& context) {
    constexpr uint8_t PREVENTING = INVALID_OPERATION | NUMERIC_OVERFLOW | NUMERIC_UNDERFLOW;
    const bool prevented = context.raised & context.unmasked & PREVENTING;
    if (prevented) context.raised &= static_cast<uint8_t>(~INEXACT_RESULT);
    x87.report(context);
    return !prevented;
}

template <typename Float>
typename Float::Word store_float(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    Float narrowed;
    NormalResult result;
    if (!x87.empty(0) && x87.is_default() && narrow_normal(x87.get(0), narrowed, result)) [[likely]] {
        x87.begin_with(result);
        return narrowed.bits;
    }
    x87.begin();
    FloatContext context = x87.context();
    if (x87.empty(0)) [[unlikely]] {
        if (!x87.stack_fault(false)) abandon_store(environment, HELPER_RETURN_ADDRESS());
        return indefinite<Float>(context).bits;
    }
    const Float value = convert<Float>(x87.get(0), context);
    if (!report_store(x87, context)) [[unlikely]]
        abandon_store(environment, HELPER_RETURN_ADDRESS());
    return value.bits;
}

// To an integer of `BITS` bits, which travels as `Word`.
template <typename Word, int BITS, bool TRUNCATES>
Word store_integer(Environment* environment) {
    const X87 x87 = WAITING_X87(environment);
    int64_t integer;
    NormalResult result;
    if (!x87.empty(0) && x87.is_default() && integer_of_normal(x87.get(0), BITS, TRUNCATES, integer, result))
        [[likely]] {
        x87.begin_with(result);
        return static_cast<Word>(integer);
    }
    x87.begin();
    FloatContext context = x87.context();
    if (x87.empty(0)) [[unlikely]] {
        if (!x87.stack_fault(false)) abandon_store(environment, HELPER_RETURN_ADDRESS());
        return static_cast<Word>(-(int64_t{1} << (BITS - 2)) * 2);
    }
    const Rounding rounding = TRUNCATES ? Rounding::TOWARD_ZERO : context.rounding;
    const auto value = static_cast<Word>(to_integer(x87.get(0), BITS, rounding, context));
    if (!report_store(x87, context)) [[unlikely]]
        abandon_store(environment, HELPER_RETURN_ADDRESS());
    return value;
}

void store_extended(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    uint8_t* const host = in_host(environment, address, EXTENDED_BYTES, AccessType::STORE);
    if (host && !x87.empty(0)) [[likely]] {
        x87.begin();
        std::memcpy(host, &x87.physical(x87.top()).significand, 8);
        std::memcpy(host + 8, &x87.physical(x87.top()).sign_exponent, 2);
        return;
    }
    if (!host && x87.empty(0)) check_writable(environment, address, HELPER_RETURN_ADDRESS());
    check_store(environment, address, EXTENDED_BYTES, HELPER_RETURN_ADDRESS());
    x87.begin();
    const bool fault = x87.empty(0);
    if (fault && !x87.stack_fault(false)) return;
    const Extended value = fault ? EXTENDED_INDEFINITE : x87.get(0);
    guest_memory.store_64(environment, address, value.significand, HELPER_RETURN_ADDRESS());
    guest_memory.store_16(environment, address + 8, value.sign_exponent, HELPER_RETURN_ADDRESS());
}

void store_decimal(Environment* environment, uint64_t address) {
    const X87 x87 = WAITING_X87(environment);
    check_writable(environment, address, HELPER_RETURN_ADDRESS());
    check_store(environment, address, PackedDecimal{}.size(), HELPER_RETURN_ADDRESS());
    x87.begin();
    FloatContext context = x87.context();
    const bool fault = x87.empty(0);
    const PackedDecimal decimal = to_decimal(fault ? EXTENDED_INDEFINITE : x87.get(0), context);
    const bool stores = fault ? x87.stack_fault(false) : report_store(x87, context);
    for (size_t i = 0; stores && i < decimal.size(); i++)
        guest_memory.store_8(environment, address + i, decimal[i], HELPER_RETURN_ADDRESS());
}

}  // namespace

InstructionFamily x87_store_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("helper_fsts_ST0", store_float<Binary32>),
        in_place_of("helper_fstl_ST0", store_float<Binary64>),
        in_place_of("helper_fstt_ST0", store_extended),
        in_place_of("helper_fist_ST0", store_integer<int32_t, 16, false>),
        in_place_of("helper_fistl_ST0", store_integer<int32_t, 32, false>),
        in_place_of("helper_fistll_ST0", store_integer<int64_t, 64, false>),
        in_place_of("helper_fistt_ST0", store_integer<int32_t, 16, true>),
        in_place_of("helper_fisttl_ST0", store_integer<int32_t, 32, true>),
        in_place_of("helper_fisttll_ST0", store_integer<int64_t, 64, true>),
        in_place_of("helper_fbst_ST0", store_decimal),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
