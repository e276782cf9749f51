#include "engine/translations.hpp"

#include "engine/linkage.hpp"

namespace perfemu {
namespace {

thread_local TranslationListener* listener = nullptr;

// The head of QEMU's TranslationBlock.
struct TranslationBlock {
    uint64_t pc;
};
using Translate = void(void* cpu, TranslationBlock* block, int most_instructions);
Translate* engine_translate = nullptr;
void translate(void* cpu, TranslationBlock* block, int most_instructions) {
    if (listener) listener->on_translation(block->pc);
    engine_translate(cpu, block, most_instructions);
}

using ForgetStored = void(uc_engine* engine, void* pages, uint64_t physical, int size, uintptr_t return_address);
ForgetStored* engine_forget_stored = nullptr;
void forget_stored(uc_engine* engine, void* pages, uint64_t physical, int size, uintptr_t return_address) {
    if (listener) listener->on_watched_store(physical, static_cast<uint32_t>(size));
    engine_forget_stored(engine, pages, physical, size, return_address);
}

using ForgetRange = void(uc_engine* engine, uint64_t begin, uint64_t end);
ForgetRange* engine_forget_range = nullptr;

}  // namespace

void hear_translations() {
    static const bool heard = [] {
        find_in_engine(engine_forget_range, "tb_invalidate_phys_range", "aarch64");
        const EngineReplacement replacements[] = {
            in_place_of("gen_intermediate_code", translate, &engine_translate),
            in_place_of("tb_invalidate_phys_page_fast", forget_stored, &engine_forget_stored),
        };
        replace_in_engine(replacements, "aarch64");
        return true;
    }();
    (void)heard;
}

HeardTranslations::HeardTranslations(TranslationListener* who) { listener = who; }
HeardTranslations::~HeardTranslations() { listener = nullptr; }

void forget_translations(uc_engine* engine, uint64_t physical, uint64_t size) {
    engine_forget_range(engine, physical, physical + size);
}

}  // namespace perfemu
