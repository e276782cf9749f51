#include "translation_guard.hpp"

#include <dlfcn.h>
#ifdef __linux__
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "isa.hpp"

namespace perfemu {
namespace {

constexpr const char* TRANSLATOR = "gen_intermediate_code_x86_64";
constexpr int MOST_INSTRUCTIONS = 128;
constexpr uint8_t UNDEFINED_OPCODE = 0x06;  // PUSH ES: one byte, no instruction in 64-bit mode
constexpr uint8_t LOCK = 0xf0;

thread_local const AddressSpace* translated = nullptr;

// The head of QEMU's TranslationBlock.
struct TranslationBlock {
    uint64_t pc;
};
using Translator = void (*)(void* cpu, TranslationBlock* block, int most_instructions);
Translator translator = nullptr;

bool is_prefix(uint8_t byte) {
    return (byte && std::strchr("\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65", byte)) || byte >> 4 == 4;
}

// BT, BTS, BTR, BTC of a register, behind their prefixes.
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
        size_t behind = at;
        while (behind < bytes.size() && is_prefix(bytes[behind])) behind++;
        if (!tests_bit_of_register(bytes.subspan(behind))) continue;
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

#ifdef __linux__
uint64_t dynamic_value(const link_map& library, int64_t tag) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
}

// Some dynamic linkers relocate the pointers in the dynamic section, some do not.
template <typename T>
const T* dynamic_pointer(const link_map& library, int64_t tag) {
    uint64_t value = dynamic_value(library, tag);
    return reinterpret_cast<const T*>(value < library.l_addr ? value + library.l_addr : value);
}

// Where the library's calls of its own function `name` find their target; nullptr if there is no such place.
void** linkage_entry(const link_map& library, const char* name) {
    if (dynamic_value(library, DT_PLTREL) != DT_RELA) return nullptr;
    const auto* relocations = dynamic_pointer<ElfW(Rela)>(library, DT_JMPREL);
    const auto* symbols = dynamic_pointer<ElfW(Sym)>(library, DT_SYMTAB);
    const auto* names = dynamic_pointer<char>(library, DT_STRTAB);
    size_t count = dynamic_value(library, DT_PLTRELSZ) / sizeof *relocations;
    for (size_t i = 0; i < count; i++) {
        size_t symbol = static_cast<size_t>(relocations[i].r_info >> 32);
        if (!std::strcmp(names + symbols[symbol].st_name, name))
            return reinterpret_cast<void**>(library.l_addr + relocations[i].r_offset);
    }
    return nullptr;
}

bool replace_translator() {
    void* library = dlopen("libunicorn.so.2", RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return false;
    translator = reinterpret_cast<Translator>(dlsym(library, TRANSLATOR));
    link_map* map = nullptr;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    dlclose(library);
    void** entry = translator && map ? linkage_entry(*map, TRANSLATOR) : nullptr;
    if (!entry) return false;
    auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto page = reinterpret_cast<uintptr_t>(entry) & ~(page_bytes - 1);
    if (mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE)) return false;
    *entry = reinterpret_cast<void*>(translate_guarded);
    return true;
}
#else
bool replace_translator() { return false; }
#endif

}  // namespace

void guard_translator() {
    static const bool guarded = replace_translator();
    if (!guarded)
        throw std::runtime_error(std::string("libunicorn.so.2 does not call ") + TRANSLATOR +
                                 " through its linkage table, so x86-64 guests could crash it: install the wheel of "
                                 "unicorn 2.1.4 for Linux");
}

GuardedTranslation::GuardedTranslation(const AddressSpace& space) { translated = &space; }
GuardedTranslation::~GuardedTranslation() { translated = nullptr; }

}  // namespace perfemu
