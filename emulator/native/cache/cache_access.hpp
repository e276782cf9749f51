// What caches and TLBs, and their replacement policies and prefetchers, are told of an access.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perfemu {

// WRITE_BACK: a line comes from the cache before, dirty or, where caches are exclusive, clean.
enum class Request : uint8_t { FETCH, LOAD, STORE, PREFETCH, WRITE_BACK };

struct CacheAccess {
    uint64_t pc;       // of the instruction; a fetch's own address; 0 of a write-back, of a page walk, of the kernel
    uint64_t address;  // virtual until it is translated; then as caches name it, behind the first level the line's
    Request kind;

    bool demanded() const { return kind != Request::PREFETCH; }
    bool stores() const { return kind == Request::STORE; }
    CacheAccess at(uint64_t other) const { return {pc, other, kind}; }
};

// What the L0 filter has to know of an access besides its address, in two bytes, because batches have many. Lines of
// another size than 64 bytes are not in the filter.
struct AccessShape {
    static constexpr uint64_t LINE_MASK = 63;

    uint8_t extent;     // in bytes, less 1, or 64 for any more; a load has LOADS besides
    uint8_t unaligned;  // the address bits that no aligned access has

    static AccessShape of(bool stores, uint32_t size, uint32_t elements) {
        const uint32_t element = size / elements, extent = std::min(size - 1, CARRY);
        return {static_cast<uint8_t>(extent | (stores ? 0 : LOADS)),
                static_cast<uint8_t>((element & (0 - element)) - 1)};
    }
    bool stores() const { return !(extent & LOADS); }
    uint32_t size() const { return (extent & LINE_MASK) + 1; }  // if it is no larger than a line
    uint32_t alignment() const { return unaligned + 1U; }

    // Both of an access at `address`: whether it loads, 1 or 0; and not 0 if it leaves its line or is not aligned.
    struct At {
        uint64_t loads, leaves;
    };
    At at(uint64_t address) const {
        const uint64_t sum = (address & LINE_MASK) + extent;
        return {sum / LOADS, (sum & CARRY) | (address & unaligned)};
    }

  private:
    static constexpr uint32_t CARRY = 64, LOADS = 128;
};

}  // namespace perfemu
