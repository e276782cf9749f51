#include "engine/translation_guard.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/linkage.hpp"
#include "ops/op.hpp"

namespace perfemu {
namespace {

constexpr int MOST_INSTRUCTIONS = 128;
constexpr uint8_t UNDEFINED_OPCODE = 0x06;  // PUSH ES: one byte, no instruction in 64-bit mode
constexpr uint8_t LOCK = 0xf0;

thread_local const AddressTranslation* translated = nullptr;
thread_local const BlockRules* rules_now = nullptr;

// The head of QEMU's TranslationBlock.
struct TranslationBlock {
    uint64_t pc;
};
using Translator = void (*)(void* cpu, TranslationBlock* block, int most_instructions);
Translator translator = nullptr;

bool is_prefix(uint8_t byte) {
    return (byte && std::strchr("\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", byte)) || byte >> 4 == 4;
}

// BT, BTS, BTR, BTC of a register, opcode their prefixes.
bool tests_bit_of_register(std::span<const uint8_t> bytes) {
    constexpr uint8_t REGISTER_OPERAND = 0xc0;
    return bytes.size() >= 3 && bytes[0] == 0x0f && std::memchr("\xa3\xab\xb3\xbb\xba", bytes[1], 5) &&
           bytes[2] >= REGISTER_OPERAND;
}

// Offset of the first byte from where on `bytes` read as a locked bit test of a register, at whatever alignment;
// their number if there is none.
size_t find_locked_bit_test(std::span<const uint8_t> bytes) {
    for (size_t at = 0; at < bytes.size(); at++) {
        const void* lock = std::memchr(&bytes[at], LOCK, bytes.size() - at);
        if (!lock) break;
        at = static_cast<size_t>(static_cast<const uint8_t*>(lock) - bytes.data());
        size_t opcode = at;
        while (opcode < bytes.size() && is_prefix(bytes[opcode])) opcode++;
        if (!tests_bit_of_register(bytes.subspan(opcode))) continue;
        while (at > 0 && is_prefix(bytes[at - 1])) at--;
        return at;
    }
    return bytes.size();
}

// In the translator's place. It may leave by longjmp: no destructors here.
void translate_guarded(void* cpu, TranslationBlock* block, int most_instructions) {
    if (!translated) {
        translator(cpu, block, most_instructions);
        return;
    }
    int most = std::min(most_instructions, MOST_INSTRUCTIONS);
    uint8_t buffer[MOST_INSTRUCTIONS * LONGEST_INSTRUCTION];
    size_t wanted = static_cast<size_t>(most) * LONGEST_INSTRUCTION;
    size_t size = translated->read(block->pc, std::span(buffer, wanted));
    size_t bad = find_locked_bit_test({buffer, size});
    if (bad == 0 && size > 0) {
        uint8_t* first = translated->host(block->pc);  // the engine has just looked this page up: it cannot fault
        uint8_t was = *first;
        *first = UNDEFINED_OPCODE;
        translator(cpu, block, most);
        *first = was;
        return;
    }
    if (bad < size) most = std::clamp(static_cast<int>(bad / LONGEST_INSTRUCTION), 1, most);
    translator(cpu, block, most);
}

}  // namespace

void guard_translator() {
    static const bool guarded = [] {
        const EngineReplacement replacement[] = {in_place_of("gen_intermediate_code", translate_guarded, &translator)};
        replace_in_engine(replacement);
        return true;
    }();
    (void)guarded;
}

const AddressTranslation* translated_space() { return translated; }

const BlockRules* block_rules() { return rules_now; }

GuardedTranslation::GuardedTranslation(const AddressTranslation& space, const BlockRules& rules) {
    translated = &space;
    rules_now = &rules;
}
GuardedTranslation::~GuardedTranslation() { translated = nullptr; }

}  // namespace perfemu
