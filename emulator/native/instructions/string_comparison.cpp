#include "string_comparison.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perfemu {
namespace {

// The immediate: Intel SDM vol. 2, "Imm8 Control Byte Operation for PCMPESTRI / ...". Translations add whether lengths
// are of 64 bits.
enum Control : uint32_t { WORDS = 1, SIGNED = 2, LAST_OR_MASK = 1 << 6, LENGTHS_64 = 1 << 8 };
enum Aggregation : uint32_t { EQUAL_ANY, RANGES, EQUAL_EACH, EQUAL_ORDERED };
enum Polarity : uint32_t { POSITIVE, NEGATIVE, MASKED_POSITIVE, MASKED_NEGATIVE };

// What is looked for, or looked through: elements, of which some are valid.
template <typename Element>
struct Text {
    static constexpr int CAPACITY = 16 / sizeof(Element);
    Element elements[CAPACITY];
    int length = 0;

    explicit Text(const Vector& vector) { std::memcpy(elements, &vector, sizeof elements); }
    bool full() const { return length == CAPACITY; }
};

int capacity(uint32_t control) { return control & WORDS ? 8 : 16; }

// Up to the first zero.
template <typename Element>
int implicit_length(const Text<Element>& text) {
    int length = 0;
    while (length < text.CAPACITY && text.elements[length]) length++;
    return length;
}

int explicit_length(uint64_t register_value, uint32_t control) {
    const int64_t value = control & LENGTHS_64 ? static_cast<int64_t>(register_value)
                                               : static_cast<int32_t>(static_cast<uint32_t>(register_value));
    const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    return static_cast<int>(std::min<uint64_t>(magnitude, static_cast<uint64_t>(capacity(control))));
}

template <typename Element>
bool found_in(const Text<Element>& set, Element element) {
    return std::find(set.elements, set.elements + set.length, element) != set.elements + set.length;
}

template <typename Element>
bool within(const Text<Element>& ranges, Element element) {
    for (int i = 0; i + 1 < ranges.length; i += 2)
        if (ranges.elements[i] <= element && element <= ranges.elements[i + 1]) return true;
    return false;
}

// Whether `wanted` begins at `at`, as far as that can be seen: behind the end of the register, anything may follow.
template <typename Element>
bool begins_at(const Text<Element>& wanted, const Text<Element>& text, int at) {
    for (int i = 0; i < wanted.length && at + i < text.CAPACITY; i++)
        if (at + i >= text.length || wanted.elements[i] != text.elements[at + i]) return false;
    return true;
}

template <typename Element>
bool equal_at(const Text<Element>& wanted, const Text<Element>& text, int at) {
    const bool in_text = at < text.length, in_wanted = at < wanted.length;
    return in_text && in_wanted ? text.elements[at] == wanted.elements[at] : in_text == in_wanted;
}

// A bit for each of the first `count` elements.
template <typename Match>
uint32_t bits_of(int count, Match match) {
    uint32_t result = 0;
    for (int i = 0; i < count; i++) result |= uint32_t{match(i)} << i;
    return result;
}

// A bit for each element of `text`, valid or not: IntRes1. Behind both texts all are equal, and nothing begins but
// nothing.
template <typename Element>
uint32_t matches(const Text<Element>& wanted, const Text<Element>& text, uint32_t control) {
    const auto from = [](int i) { return (1u << Text<Element>::CAPACITY) - (1u << i); };
    const int longer = std::max(wanted.length, text.length);
    switch (control >> 2 & 3) {
        case EQUAL_ANY: return bits_of(text.length, [&](int i) { return found_in(wanted, text.elements[i]); });
        case RANGES: return bits_of(text.length, [&](int i) { return within(wanted, text.elements[i]); });
        case EQUAL_EACH: return bits_of(longer, [&](int i) { return equal_at(wanted, text, i); }) | from(longer);
        default:
            return bits_of(text.length, [&](int i) { return begins_at(wanted, text, i); }) |
                   (wanted.length ? 0 : from(text.length));
    }
}

// IntRes2, and the flags.
template <typename Element>
uint32_t compare_texts(Environment* environment, const Text<Element>& wanted, const Text<Element>& text,
                       uint32_t control) {
    const uint32_t all = (1u << text.CAPACITY) - 1, valid = (1u << text.length) - 1;
    uint32_t result = matches(wanted, text, control);
    switch (control >> 4 & 3) {
        case NEGATIVE: result ^= all; break;
        case MASKED_NEGATIVE: result ^= valid; break;
    }
    flags_source(environment) =
        (result ? CARRY : 0) | (text.full() ? 0 : ZERO) | (wanted.full() ? 0 : SIGN) | (result & 1 ? OVERFLOW_FLAG : 0);
    return result;
}

constexpr unsigned RAX = 0, RCX = 1, RDX = 2;

struct ExplicitLengths {
    template <typename Element>
    static void set(Environment* environment, Text<Element>& wanted, Text<Element>& text, uint32_t control) {
        wanted.length = explicit_length(general_register(environment, RAX), control);
        text.length = explicit_length(general_register(environment, RDX), control);
    }
};
struct ImplicitLengths {
    template <typename Element>
    static void set(Environment*, Text<Element>& wanted, Text<Element>& text, uint32_t) {
        wanted.length = implicit_length(wanted);
        text.length = implicit_length(text);
    }
};

template <typename Lengths, typename Element>
uint32_t result_of(Environment* environment, const Vector& wanted_in, const Vector& text_in, uint32_t control) {
    Text<Element> wanted(wanted_in), text(text_in);
    Lengths::set(environment, wanted, text, control);
    return compare_texts(environment, wanted, text, control);
}

template <typename Lengths>
uint32_t result_of(Environment* environment, const Vector& wanted, const Vector& text, uint32_t control) {
    switch (control & (WORDS | SIGNED)) {
        case 0: return result_of<Lengths, uint8_t>(environment, wanted, text, control);
        case WORDS: return result_of<Lengths, uint16_t>(environment, wanted, text, control);
        case SIGNED: return result_of<Lengths, int8_t>(environment, wanted, text, control);
        default: return result_of<Lengths, int16_t>(environment, wanted, text, control);
    }
}

template <typename Lengths>
void give_index(Environment* environment, const Vector* wanted, const Vector* text, uint32_t control) {
    const uint32_t result = result_of<Lengths>(environment, *wanted, *text, control);
    const int index = control & LAST_OR_MASK ? 31 - std::countl_zero(result) : std::countr_zero(result);
    general_register(environment, RCX) = static_cast<uint64_t>(result ? index : capacity(control));
}

template <typename Lengths>
void give_mask(Environment* environment, const Vector* wanted, const Vector* text, uint32_t control) {
    const uint32_t result = result_of<Lengths>(environment, *wanted, *text, control);
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
        in_place_of("helper_pcmpestri_xmm", give_index<ExplicitLengths>),
        in_place_of("helper_pcmpestrm_xmm", give_mask<ExplicitLengths>),
        in_place_of("helper_pcmpistri_xmm", give_index<ImplicitLengths>),
        in_place_of("helper_pcmpistrm_xmm", give_mask<ImplicitLengths>),
    };
    return {HELPERS};
}

}  // namespace perfemu
