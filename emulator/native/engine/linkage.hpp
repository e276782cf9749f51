// Functions of our own in the place of functions of the engine's library.
#pragma once

#include <span>
#include <type_traits>

namespace perfemu {

// libunicorn exports all its functions, and reaches every one that another of its files defines through words that the
// dynamic linker has filled: linkage and offset tables, and tables of its own such as that of the helpers which
// translations call. These words are no part of Unicorn's API; they are found by the function's name.
struct EngineReplacement {
    const char* name;  // without the suffix of the target: `helper_addps`
    const void* function;
    // A pointer to functions: becomes the engine's own, to be called from `function`; null if nobody does.
    void* original = nullptr;
};

template <typename Function>
EngineReplacement in_place_of(const char* name, Function* function,
                              std::type_identity_t<Function**> original = nullptr) {
    return {name, reinterpret_cast<const void*>(function), original};
}

// The engine calls these instead, from now on. Only engines that are opened later know what calls of them clobber, so
// this comes before the first uc_open. `target` is the names' suffix: the guest's ISA as QEMU calls it. Throws
// std::runtime_error, and replaces none, where one of them is not reached through such a word.
void replace_in_engine(std::span<const EngineReplacement> replacements, const char* target = "x86_64");

// The x86-64 engine's function of that name, without the suffix. Throws std::runtime_error if there is none.
const void* required_engine_function(const char* name, const char* target = "x86_64");

template <typename Function>
void find_in_engine(Function*& function, const char* name, const char* target = "x86_64") {
    function = reinterpret_cast<Function*>(const_cast<void*>(required_engine_function(name, target)));
}

}  // namespace perfemu
