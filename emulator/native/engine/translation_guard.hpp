// What must not reach the engine's translator: x86 code on which it would corrupt its memory or abort.
#pragma once

#include <span>

#include "memory/memory.hpp"

namespace perfemu {

// Unicorn 2.1.4's translator of x86 code trusts it in two ways:
// - x87 and shuffle instructions leave behind temporaries, up to two each, in a table of 512 that nothing checks. So
//   no block gets longer than 128 instructions.
// - LOCK before BT, BTS, BTR or BTC of a register, which is an undefined instruction, makes it use an address that it
//   has not computed, and abort. So a block ends before such an instruction, and one that starts with it is translated
//   as some other undefined instruction. The core, which decodes the same bytes, never lets it run.
//
// We stand in the place of the function that the engine calls for it (engine_linkage).

// Throws std::runtime_error where that cannot be: then no x86 code may run.
void guard_translator();

// Whose code this thread's engine translates; null outside of `GuardedTranslation`.
const AddressTranslation* translated_space();

// What decides where blocks begin, and whether the code is the engine's to correct.
class BlockRules {
  public:
    virtual ~BlockRules() = default;
    // Whether the core has to see that instruction before it runs.
    virtual bool begins_block(std::span<const uint8_t> bytes) const = 0;
    // Whether it is 64-bit code.
    virtual bool is_64() const = 0;
};
const BlockRules* block_rules();

// While one exists, what this thread's engine translates is code of `space`.
class GuardedTranslation {
  public:
    GuardedTranslation(const AddressTranslation& space, const BlockRules& rules);
    ~GuardedTranslation();
    GuardedTranslation(const GuardedTranslation&) = delete;
    GuardedTranslation& operator=(const GuardedTranslation&) = delete;
};

}  // namespace perfemu
