// What caches and TLBs, and their replacement policies and prefetchers, are told of an access.
#pragma once

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

}  // namespace perfemu
