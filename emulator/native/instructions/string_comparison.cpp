#include "instructions/string_comparison.hpp"

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

// All elements at once, in whatever registers of the host the compiler finds for 16 bytes.
template <typename Element>
struct Elements;
#define ELEMENTS(Element)                              \
    template <>                                        \
    struct Elements<Element> {                         \
        using Type [[gnu::vector_size(16)]] = Element; \
    };
ELEMENTS(uint8_t)
ELEMENTS(int8_t)
ELEMENTS(uint16_t)
ELEMENTS(int16_t)
#undef ELEMENTS

// What is looked for, or looked through: elements, of which some are valid.
template <typename Element>
struct Text {
    static constexpr int CAPACITY = 16 / sizeof(Element);
    static constexpr uint32_t ALL = (1u << CAPACITY) - 1;
    using All = typename Elements<Element>::Type;
    All elements;
    int length = 0;

    explicit Text(const Vector& vector) { std::memcpy(&elements, &vector, sizeof elements); }
    bool full() const { return length == CAPACITY; }
    uint32_t valid() const { return (1u << length) - 1; }
    // In every place.
    static All repeated(Element element) { return All{} + element; }
};

// A bit for each element, of which a comparison has made all bits equal.
template <typename Element>
uint32_t bits_of(const auto& comparison) {
    constexpr int PLACES = Text<Element>::CAPACITY / 2, BITS = 8 * sizeof(Element);
    // In place i of a half, 2^i: multiplication brings them together in the last place.
    constexpr uint64_t SELECTED = PLACES == 8 ? 0x8040'2010'0804'0201 : 0x0008'0004'0002'0001;
    constexpr uint64_t ONES = PLACES == 8 ? 0x0101'0101'0101'0101 : 0x0001'0001'0001'0001;
    uint64_t halves[2];
    std::memcpy(halves, &comparison, sizeof halves);
    const auto together = [](uint64_t half) { return static_cast<uint32_t>((half & SELECTED) * ONES >> (64 - BITS)); };
    return together(halves[0]) | together(halves[1]) << PLACES;
}

int capacity(uint32_t control) { return control & WORDS ? 8 : 16; }

// Up to the first zero.
template <typename Element>
int implicit_length(const Text<Element>& text) {
    return std::countr_zero(bits_of<Element>(text.elements == Text<Element>::repeated(0)) | 1u << text.CAPACITY);
}

int explicit_length(uint64_t register_value, uint32_t control) {
    const int64_t value = control & LENGTHS_64 ? static_cast<int64_t>(register_value)
                                               : static_cast<int32_t>(static_cast<uint32_t>(register_value));
    const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    return static_cast<int>(std::min<uint64_t>(magnitude, static_cast<uint64_t>(capacity(control))));
}

// Each of these: a bit for each element of the text's, valid or not, that...
// is one of those wanted.
template <typename Element>
uint32_t found_in(const Text<Element>& wanted, const Text<Element>& text) {
    auto found = text.elements != text.elements;
    for (int i = 0; i < wanted.length; i++) found |= text.elements == text.repeated(wanted.elements[i]);
    return bits_of<Element>(found);
}

// is within a pair of those wanted.
template <typename Element>
uint32_t within(const Text<Element>& wanted, const Text<Element>& text) {
    auto found = text.elements != text.elements;
    for (int i = 0; i + 1 < wanted.length; i += 2)
        found |= (text.repeated(wanted.elements[i]) <= text.elements) &
                 (text.elements <= text.repeated(wanted.elements[i + 1]));
    return bits_of<Element>(found);
}

// begins all that is wanted, as far as that can be seen: behind the end of the register, anything may follow.
template <typename Element>
uint32_t begins_at(const Text<Element>& wanted, const Text<Element>& text) {
    uint32_t begins = text.ALL;
    for (int i = 0; i < wanted.length && begins; i++) {
        const uint32_t equal = bits_of<Element>(text.elements == text.repeated(wanted.elements[i]));
        begins &= (~text.ALL | (equal & text.valid())) >> i;
    }
    return begins;
}

// is the one wanted there, or neither is valid.
template <typename Element>
uint32_t equal_at(const Text<Element>& wanted, const Text<Element>& text) {
    const uint32_t both = wanted.valid() & text.valid(), neither = text.ALL & ~(wanted.valid() | text.valid());
    return (bits_of<Element>(text.elements == wanted.elements) & both) | neither;
}

// IntRes1. Behind both texts all are equal, and nothing begins but nothing.
template <typename Element>
uint32_t matches(const Text<Element>& wanted, const Text<Element>& text, uint32_t control) {
    switch (control >> 2 & 3) {
        case EQUAL_ANY: return found_in(wanted, text) & text.valid();
        case RANGES: return within(wanted, text) & text.valid();
        case EQUAL_EACH: return equal_at(wanted, text);
        default: return begins_at(wanted, text) & (wanted.length ? text.valid() : text.ALL);
    }
}

// IntRes2, and the flags.
template <typename Element>
uint32_t compare_texts(Environment* environment, const Text<Element>& wanted, const Text<Element>& text,
                       uint32_t control) {
    uint32_t result = matches(wanted, text, control);
    switch (control >> 4 & 3) {
        case NEGATIVE: result ^= text.ALL; break;
        case MASKED_NEGATIVE: result ^= text.valid(); break;
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
