#include "instructions/translation.hpp"

#include <array>

#include "engine/translation_guard.hpp"
#include "instructions/bit_tests.hpp"
#include "instructions/code_bytes.hpp"
#include "instructions/encoding.hpp"
#include "instructions/executed.hpp"
#include "instructions/memory_operand.hpp"
#include "instructions/mmx.hpp"
#include "instructions/near_return.hpp"
#include "instructions/substitution.hpp"
#include "instructions/x87_conditional.hpp"
#include "ops/op.hpp"

namespace perfemu {
namespace {

// QEMU's DisasContextBase, the head of what its translator knows of a block.
struct BlockTranslation {
    void* block;
    uint64_t first;
    uint64_t next;  // address of the instruction at hand
    int end;        // DisasJumpType: whether the block ends behind the instruction that has just been translated
};
constexpr int GOES_ON = 0;       // DISAS_NEXT
constexpr int ENDS_IN_TIME = 1;  // DISAS_TOO_MANY: before the next instruction, which another block begins with
using TranslateInstruction = void(BlockTranslation*, void* cpu);

// QEMU's TranslatorOps.
struct Translator {
    void* init;
    void* start;
    void* start_instruction;
    void* check_breakpoint;
    TranslateInstruction* translate_instruction;
    void* stop;
    void* synchronize_pc;
};
using TranslateBlock = void(const Translator*, BlockTranslation*, void* cpu, void* block, int most_instructions);

TranslateBlock* engine_translate_block = nullptr;
thread_local TranslateInstruction* engine_translate_instruction = nullptr;

void translate_plainly() {
    end_executed();
    end_conditional_move();
    end_near_return();
    present_code({});
    access_as({});
}

// Whether the core has to see the instruction before it runs. Inside a block it would be reached by single steps.
bool begins_block(uint64_t address) {
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes;
    const size_t size = translated_space()->read(address, bytes);
    if (size == 0) return false;
    return block_rules()->begins_block({bytes.data(), size});
}

// As a part of the instruction at hand, which then knows no other way to the flags.
void ask_for_flags(BlockTranslation* block, void* cpu) {
    const uint64_t address = block->next;
    present_code(ASKS_FOR_FLAGS, address, address);
    engine_translate_instruction(block, cpu);
    present_code({});
    block->next = address;
    block->end = GOES_ON;
}

// May leave by longjmp, as what it calls: no destructors.
void translate_instruction(BlockTranslation* block, void* cpu) {
    std::array<uint8_t, LONGEST_INSTRUCTION> bytes;
    const size_t size = translated_space()->read(block->next, bytes);
    const bool is_64 = block_rules()->is_64();
    if (tests_bit({bytes.data(), size}, is_64)) ask_for_flags(block, cpu);
    std::optional<Encoding> encoding;
    if (is_64) encoding = decode_encoding({bytes.data(), size});
    const uint64_t address = block->next;
    const ExecutedRow* row = encoding ? executed_row(*encoding) : nullptr;
    if (row) {
        begin_executed(*row, *encoding, address);
    } else if (encoding) {
        if (substitute(*encoding, {bytes.data(), size}))
            present_code({bytes.data(), encoding->length}, address, address + encoding->length - 1);
        access_as(memory_operand(*encoding));
    }
    if (encoding) begin_mmx(*encoding);
    if (encoding) begin_conditional_move(*encoding);
    if (encoding) begin_near_return(*encoding);
    engine_translate_instruction(block, cpu);
    end_mmx();
    if (row) block->next = address + encoding->length;
    translate_plainly();
    if (block->end == GOES_ON && begins_block(block->next)) block->end = ENDS_IN_TIME;
}

void translate_block(const Translator* translator, BlockTranslation* block, void* cpu, void* engine_block,
                     int most_instructions) {
    translate_plainly();  // another translation may not have come to its end
    if (!translated_space()) {
        engine_translate_block(translator, block, cpu, engine_block, most_instructions);
        return;
    }
    Translator ours = *translator;
    engine_translate_instruction = translator->translate_instruction;
    ours.translate_instruction = translate_instruction;
    engine_translate_block(&ours, block, cpu, engine_block, most_instructions);
}

}  // namespace

InstructionFamily translation_family() {
    static const EngineReplacement REPLACEMENTS[] = {
        in_place_of("translator_loop", translate_block, &engine_translate_block),
    };
    return {REPLACEMENTS};
}

}  // namespace perfemu
