// Which line of a full set makes room for another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/named.hpp"

namespace perfemu {

// In every policy a second use of a line right behind the first, with no other use in the set between them, must
// change nothing: callers do not report it.
class Replacement {
  public:
    using Maker = std::unique_ptr<Replacement> (*)(uint32_t sets, uint32_t ways);
    using Row = Named<Maker>;

    virtual ~Replacement() = default;

    // A hit, or a write-back from an inner cache. `slot` is set * ways + way.
    void use(uint32_t slot) {
        if (last_use_.empty())
            used(slot);
        else
            last_use_[slot] = ++clock_;
    }
    virtual void filled(uint32_t slot) = 0;
    // The slot to be replaced in a set all of whose ways hold a line.
    virtual uint32_t victim(uint32_t set) = 0;
    // Whether a fill is as good as a use: then the first hit on a new line changes nothing either.
    virtual bool fill_is_use() const { return true; }

  protected:
    Replacement(uint32_t sets, uint32_t ways) : sets_(sets), ways_(ways) {}
    virtual void used(uint32_t slot) = 0;

    uint32_t sets_;
    uint32_t ways_;
    // The most frequent policy without a virtual call: when each slot was last used. Empty for other policies.
    std::vector<uint64_t> last_use_;
    uint64_t clock_ = 0;
};

}  // namespace perfemu
