#include "string_comparison.hpp"

#include <algorithm>
#include <bit>

namespace perfemu {
namespace {

// The immediate: Intel SDM vol. 2, "Imm8 Control Byte Operation for PCMPESTRI / ...". Translations add whether lengths
// are of 64 bits.
enum Control : uint32_t { WORDS = 1, SIGNED = 2, LAST_OR_MASK = 1 << 6, LENGTHS_64 = 1 << 8 };
enum Aggregation : uint32_t { EQUAL_ANY, RANGES, EQUAL_EACH, EQUAL_ORDERED };
enum Polarity : uint32_t { POSITIVE, NEGATIVE, MASKED_POSITIVE, MASKED_NEGATIVE };

// What is looked for, or looked through: its valid elements.
struct Text {
    int32_t elements[16];
    int length;
};

int capacity(uint32_t control) { return control & WORDS ? 8 : 16; }

int32_t element_at(const Vector& vector, uint32_t control, int i) {
    switch (control & (WORDS | SIGNED)) {
        case 0: return vector.bytes[i];
        case WORDS: return vector.words[i];
        case SIGNED: return static_cast<int8_t>(vector.bytes[i]);
        default: return static_cast<int16_t>(vector.words[i]);
    }
}

Text read_text(const Vector& vector, uint32_t control, int length) {
    Text text;
    text.length = length;
    for (int i = 0; i < length; i++) text.elements[i] = element_at(vector, control, i);
    return text;
}

// Up to the first zero.
int implicit_length(const Vector& vector, uint32_t control) {
    int length = 0;
    while (length < capacity(control) && element_at(vector, control, length)) length++;
    return length;
}

int explicit_length(uint64_t register_value, uint32_t control) {
    const int64_t value = control & LENGTHS_64 ? static_cast<int64_t>(register_value)
                                               : static_cast<int32_t>(static_cast<uint32_t>(register_value));
    const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    return static_cast<int>(std::min<uint64_t>(magnitude, static_cast<uint64_t>(capacity(control))));
}

bool found_in(const Text& set, int32_t element) {
    return std::find(set.elements, set.elements + set.length, element) != set.elements + set.length;
}

bool within(const Text& ranges, int32_t element) {
    for (int i = 0; i + 1 < ranges.length; i += 2)
        if (ranges.elements[i] <= element && element <= ranges.elements[i + 1]) return true;
    return false;
}

// Whether `wanted` begins at `at`, as far as that can be seen: behind the end of the register, anything may follow.
bool begins_at(const Text& wanted, const Text& text, int at, int end) {
    for (int i = 0; i < wanted.length && at + i < end; i++)
        if (at + i >= text.length || wanted.elements[i] != text.elements[at + i]) return false;
    return true;
}

// A bit for each element of `text`, valid or not: IntRes1.
uint32_t matches(const Text& wanted, const Text& text, uint32_t control) {
    const int end = capacity(control);
    uint32_t result = 0;
    for (int i = 0; i < end; i++) {
        bool match = false;
        switch (control >> 2 & 3) {
            case EQUAL_ANY: match = i < text.length && found_in(wanted, text.elements[i]); break;
            case RANGES: match = i < text.length && within(wanted, text.elements[i]); break;
            case EQUAL_EACH: {
                const bool in_text = i < text.length, in_wanted = i < wanted.length;
                match = in_text && in_wanted ? text.elements[i] == wanted.elements[i] : in_text == in_wanted;
                break;
            }
            case EQUAL_ORDERED: match = begins_at(wanted, text, i, end); break;
        }
        result |= static_cast<uint32_t>(match) << i;
    }
    return result;
}

// IntRes2, and the flags.
uint32_t compare_texts(Environment* environment, const Vector& wanted_in, int wanted_length, const Vector& text_in,
                       int text_length, uint32_t control) {
    const int end = capacity(control);
    const uint32_t all = (1u << end) - 1, valid = (1u << text_length) - 1;
    const Text wanted = read_text(wanted_in, control, wanted_length), text = read_text(text_in, control, text_length);
    uint32_t result = matches(wanted, text, control);
    switch (control >> 4 & 3) {
        case NEGATIVE: result ^= all; break;
        case MASKED_NEGATIVE: result ^= valid; break;
    }
    flags_source(environment) = (result ? CARRY : 0) | (text_length < end ? ZERO : 0) |
                                (wanted_length < end ? SIGN : 0) | (result & 1 ? OVERFLOW_FLAG : 0);
    return result;
}

constexpr unsigned RAX = 0, RCX = 1, RDX = 2;

uint32_t explicit_result(Environment* environment, const Vector& wanted, const Vector& text, uint32_t control) {
    const int wanted_length = explicit_length(general_register(environment, RAX), control);
    const int text_length = explicit_length(general_register(environment, RDX), control);
    return compare_texts(environment, wanted, wanted_length, text, text_length, control);
}

uint32_t implicit_result(Environment* environment, const Vector& wanted, const Vector& text, uint32_t control) {
    return compare_texts(environment, wanted, implicit_length(wanted, control), text, implicit_length(text, control),
                         control);
}

using Result = uint32_t(Environment*, const Vector&, const Vector&, uint32_t);

template <Result RESULT>
void give_index(Environment* environment, const Vector* wanted, const Vector* text, uint32_t control) {
    const uint32_t result = RESULT(environment, *wanted, *text, control);
    const int index = control & LAST_OR_MASK ? 31 - std::countl_zero(result) : std::countr_zero(result);
    general_register(environment, RCX) = static_cast<uint64_t>(result ? index : capacity(control));
}

template <Result RESULT>
void give_mask(Environment* environment, const Vector* wanted, const Vector* text, uint32_t control) {
    const uint32_t result = RESULT(environment, *wanted, *text, control);
    Vector mask{};
    if (!(control & LAST_OR_MASK)) {
        mask.doublewords[0] = result;
    } else {
        for (int i = 0; i < capacity(control); i++) {
            if (!(result >> i & 1)) continue;
            if (control & WORDS)
                mask.words[i] = 0xffff;
            else
                mask.bytes[i] = 0xff;
        }
    }
    vector_register(environment, 0) = mask;
}

}  // namespace

InstructionFamily string_comparison_family() {
    static const EngineReplacement HELPERS[] = {
        in_place_of("helper_pcmpestri_xmm", give_index<explicit_result>),
        in_place_of("helper_pcmpestrm_xmm", give_mask<explicit_result>),
        in_place_of("helper_pcmpistri_xmm", give_index<implicit_result>),
        in_place_of("helper_pcmpistrm_xmm", give_mask<implicit_result>),
    };
    return {HELPERS};
}

}  // namespace perfemu
