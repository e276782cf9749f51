// Where the engine's translated blocks call our hook.
//
// Unicorn's code before each block calls the hook, and then a function of its own that looks for exit requests:
//     MOV RDI, engine; MOV ESI, address; MOV EDX, size; MOV RCX, user; CALL hook
//     MOV RDI, engine; XOR ESI, ESI; CALL check
// Where the calls are changed, the block calls another function instead, one that knows which block it is; and the look
// is left out, which that one takes where it is needed. None of this is part of the API: what does not look exactly
// like this is left alone, and then all is the same, but slower.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <optional>

namespace perfemu {

class TranslatedCalls {
  public:
    // `hook`: the function that new translations call.
    TranslatedCalls(uc_engine* engine, uc_arch arch, const void* hook);

    // False: no call can be changed here, now or later.
    bool usable() const { return usable_; }
    // The translation that has called the hook, and is returned to there, calls `entry` alone from now on, which is no
    // other block's. False: it does not look as it should, or that is too far away.
    bool redirect(const void* return_address, const void* entry);
    // As it was, if it is still there: it may have been thrown away since, and its memory be another's.
    void restore(const void* return_address, const void* entry);
    // Takes the look for exit requests. Does not return if there is one.
    void check_exit() const { check_(engine_, 0); }

  private:
    using Check = void (*)(void* engine, uint32_t in_delay_slot);

    struct Callee;
    struct Callees;
    std::optional<Callees> callees(const void* return_address);
    bool writable(const uint8_t* code, const Callee& callee);

    uc_engine* engine_;
    const void* hook_;
    Check check_ = nullptr;
    bool usable_ = false;
    uintptr_t code_begin_ = 0, code_end_ = 0;  // a mapping of the engine's code, which can be written
};

}  // namespace perfemu
