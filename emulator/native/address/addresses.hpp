// The data addresses of a block's instructions, found from the registers with which the block is entered.
//
// Each block's slice is computed when the block is entered, from the engine's own register file. Where it has several
// segments, the engine calls before the first instruction of each further one, where the registers are known again.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "address/access.hpp"
#include "address/slice_compiler.hpp"
#include "isa.hpp"
#include "memory.hpp"

namespace perfemu {

// How a block's addresses are computed, made once for each decoded block.
class AddressSlice {
  public:
    std::span<const AccessSite> sites() const { return sites_; }

  private:
    friend class Addresses;
    // base + (index << shift) + displacement
    struct Access {
        const uint64_t* base;
        const uint64_t* index;
        uint64_t displacement;
        uint64_t shift;
    };
    struct Step {
        slice::MicroOp what;
        const uint64_t *a, *b, *c;
        uint64_t* result;
    };
    struct Segment {
        uint64_t pc;        // of its first instruction
        unsigned first_op;  //
        unsigned first_site;
        std::vector<Step> steps;
        std::vector<Access> accesses;
        std::vector<uint8_t> registers;  // that it reads; kept only if they are not read in place
    };

    bool plain_ = false;            // the first segment is all, and only needs `accesses_`
    std::vector<Access> accesses_;  // of the first segment
    std::vector<AccessSite> sites_;
    std::vector<Segment> segments_;
    uint64_t address_ = 0;
    std::vector<uint8_t> bytes_;  // what was compiled
};

class Addresses {
  public:
    // What to do without; for tests. Left alone, the fastest way is chosen that works in this engine.
    struct Restrictions {
        bool no_register_file = false;  // registers are read through the engine's API
        bool no_code_ranges = false;    // every instruction calls, in every block
    };
    static std::unique_ptr<Addresses> make(uc_engine* engine, const Isa& isa) { return make(engine, isa, {}); }
    static std::unique_ptr<Addresses> make(uc_engine* engine, const Isa& isa, Restrictions restrictions);
    ~Addresses();
    Addresses(const Addresses&) = delete;
    Addresses& operator=(const Addresses&) = delete;

    void set_address_space(const AddressSpace& space);
    std::unique_ptr<AddressSlice> compile(uint64_t address, std::span<const uint8_t> bytes);

    // The engine is about to run the block. Writes into `found` the address of each site; those that the entry's
    // registers do not tell are written while the block runs. False: the block must be translated anew first; PC has
    // been written, the engine will come again, and nothing has been executed. Call it for every block that runs, also
    // those without sites.
    bool enter(AddressSlice& slice, uint64_t* found) {
        entered_ = &slice;
        if (!slice.plain_) [[unlikely]]
            return enter_computed(slice, found);
        for (const AddressSlice::Access& access : slice.accesses_)
            *found++ = *access.base + (*access.index << access.shift) + access.displacement;
        return true;
    }
    // Whether `found` is complete as soon as `enter` returns true.
    bool known_at_entry(const AddressSlice& slice) const { return slice.segments_.size() == 1; }
    // Whether the addresses of the instructions before `last` have been found, in the block that was entered last. If
    // these have retired and it says no, addresses have been lost: an internal error.
    bool found_until(const AddressSlice& slice, unsigned last) const {
        return known_at_entry(slice) || (entered_ == &slice && found_ops_ >= last);
    }
    // What has gone wrong inside, after which the engine has been stopped; empty if nothing has.
    const std::string& failure() const { return failure_; }
    // The name of the way that is in use, for tests and benchmarks.
    const char* way() const;

  private:
    Addresses(uc_engine* engine, const Isa& isa, Restrictions restrictions);
    bool enter_computed(AddressSlice& slice, uint64_t* found);

    const AddressSlice* entered_ = nullptr;
    unsigned found_ops_ = 0;  // if it is not known at its entry
    std::string failure_;
};

}  // namespace perfemu
