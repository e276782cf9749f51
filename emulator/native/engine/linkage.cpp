#include "engine/linkage.hpp"

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
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/function.hpp"

namespace perfemu {
namespace {

constexpr const char* LIBRARY = "libunicorn.so.2";

[[noreturn]] void refuse(const std::string& what) {
    throw std::runtime_error(std::string(LIBRARY) + " " + what +
                             ", so guests could not run right: install the wheel of unicorn 2.1.4 for Linux");
}

std::string symbol(const char* name, const char* target) { return std::string(name) + "_" + target; }

const void* required(const std::string& name) {
    const void* function = engine_function(name.c_str());
    if (!function) refuse("has no function " + name);
    return function;
}

#ifdef __linux__
// Words that hold a function's address and nothing else, on each host.
#if defined(__x86_64__)
constexpr uint32_t ADDRESS_WORDS[] = {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
#elif defined(__aarch64__)
constexpr uint32_t ADDRESS_WORDS[] = {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT};
#else
constexpr uint32_t ADDRESS_WORDS[] = {0};
#endif

uint64_t dynamic_value(const link_map& library, int64_t tag) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
}

// Some dynamic linkers relocate the pointers in the dynamic section, some do not.
template <typename T>
const T* dynamic_pointer(const link_map& library, int64_t tag) {
    uint64_t value = dynamic_value(library, tag);
    return reinterpret_cast<const T*>(value && value < library.l_addr ? value + library.l_addr : value);
}

using Words = std::vector<std::vector<void**>>;  // of each function

// Adds those that the `bytes` of relocations at `tag` fill. `functions`: symbol's value -> which function.
void add_words(const link_map& library, int64_t tag, size_t bytes,
               const std::unordered_map<uint64_t, size_t>& functions, Words& words) {
    const auto* relocations = dynamic_pointer<ElfW(Rela)>(library, tag);
    const auto* symbols = dynamic_pointer<ElfW(Sym)>(library, DT_SYMTAB);
    for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++) {
        const ElfW(Rela) & relocation = relocations[i];
        const auto type = static_cast<uint32_t>(relocation.r_info);
        if (std::find(std::begin(ADDRESS_WORDS), std::end(ADDRESS_WORDS), type) == std::end(ADDRESS_WORDS)) continue;
        const auto function = functions.find(symbols[relocation.r_info >> 32].st_value);
        if (function == functions.end() || relocation.r_addend) continue;
        words[function->second].push_back(reinterpret_cast<void**>(library.l_addr + relocation.r_offset));
    }
}

void write_word(void** word, const void* function) {
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto page = reinterpret_cast<uintptr_t>(word) & ~(page_bytes - 1);
    if (mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE))
        refuse("cannot be written where it keeps the addresses of its functions");
    *word = const_cast<void*>(function);
}

const link_map* mapped_library() {
    void* library = dlopen(LIBRARY, RTLD_NOLOAD | RTLD_LAZY);
    link_map* map = nullptr;
    if (library) {
        dlinfo(library, RTLD_DI_LINKMAP, &map);
        dlclose(library);
    }
    return map;
}
#endif

}  // namespace

const void* required_engine_function(const char* name, const char* target) { return required(symbol(name, target)); }

void replace_in_engine(std::span<const EngineReplacement> replacements, const char* target) {
#ifdef __linux__
    const link_map* library = mapped_library();
    if (!library) refuse("is not loaded");
    std::unordered_map<uint64_t, size_t> functions;
    std::vector<const void*> originals;
    for (const EngineReplacement& replacement : replacements) {
        originals.push_back(required(symbol(replacement.name, target)));
        functions[reinterpret_cast<uint64_t>(originals.back()) - library->l_addr] = originals.size() - 1;
    }
    Words words(replacements.size());
    add_words(*library, DT_RELA, dynamic_value(*library, DT_RELASZ), functions, words);
    add_words(*library, DT_JMPREL, dynamic_value(*library, DT_PLTRELSZ), functions, words);
    for (size_t i = 0; i < words.size(); i++)
        if (words[i].empty()) refuse("does not call " + symbol(replacements[i].name, target) + " through a table");
    for (size_t i = 0; i < words.size(); i++) {
        if (replacements[i].original) std::memcpy(replacements[i].original, &originals[i], sizeof originals[i]);
        for (void** word : words[i]) write_word(word, replacements[i].function);
    }
#else
    if (!replacements.empty()) refuse("can be changed on Linux alone");
#endif
}

}  // namespace perfemu
