// The data addresses of a block's instructions, found from the registers with which the block is entered.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "address/access.hpp"
#include "isa.hpp"
#include "memory.hpp"

namespace perfemu {

// How a block's addresses are computed, made once for each decoded block.
class AddressSlice {
  public:
    virtual ~AddressSlice() = default;
    std::span<const AccessSite> sites() const { return sites_; }

  protected:
    std::vector<AccessSite> sites_;
};

class Addresses {
  public:
    virtual ~Addresses() = default;

    // Chooses the fastest way that works in this engine, and tries it out.
    static std::unique_ptr<Addresses> make(uc_engine* engine, const Isa& isa);

    virtual void set_address_space(const AddressSpace& space) = 0;
    virtual std::unique_ptr<AddressSlice> compile(uint64_t address, std::span<const uint8_t> bytes) = 0;

    // The engine is about to run the block. Writes into `found` the address of each site; those that the entry's
    // registers do not tell are written while the block runs. False: the block must be translated anew first; PC has
    // been written, the engine will come again, and nothing has been executed.
    virtual bool enter(AddressSlice& slice, uint64_t* found) = 0;
    // Whether `found` is complete as soon as `enter` returns.
    virtual bool known_at_entry(const AddressSlice& slice) const = 0;
    // The name of the way that is in use, for tests and benchmarks.
    virtual const char* way() const = 0;
};

}  // namespace perfemu
