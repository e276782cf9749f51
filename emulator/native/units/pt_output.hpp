// Where a trace is written: regions of memory, one after the other, as a table of physical addresses names them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace perfemu {

// Intel SDM volume 3, "Table of Physical Addresses (ToPA)".
struct TraceRegion {
    std::span<uint8_t> memory;
    bool interrupts = false;  // when it is full
    bool stops = false;       // ... then tracing stops
};

// The last region is followed by the first.
class TraceOutput {
  public:
    // The next byte goes to `offset` in `region`. Throws std::invalid_argument where there is no such place.
    void begin(std::vector<TraceRegion> regions, size_t region, uint64_t offset);
    // It is nobody's memory any more; where it was stays known.
    void forget();
    size_t region() const { return region_; }
    uint64_t offset() const { return regions_.empty() ? last_offset_ : at_ - regions_[region_].memory.data(); }
    bool stopped() const { return stopped_; }
    bool interrupts() const { return interrupt_; }
    void clear_interrupt() { interrupt_ = false; }
    uint64_t written() const { return written_; }

    // One packet. After a stop, which leaves `offset` at its region's end, nothing is written.
    void write(const uint8_t* bytes, size_t size) {
        if (static_cast<size_t>(end_ - at_) <= size) [[unlikely]]
            return write_on(bytes, size);
        for (size_t i = 0; i < size; i++) at_[i] = bytes[i];
        at_ += size;
        written_ += size;
    }

  private:
    void write_on(const uint8_t* bytes, size_t size);
    void enter(size_t region, uint64_t offset);

    std::vector<TraceRegion> regions_;
    size_t region_ = 0;
    uint8_t *at_ = nullptr, *end_ = nullptr;
    uint64_t last_offset_ = 0;
    uint64_t written_ = 0;  // ever
    bool stopped_ = true, interrupt_ = false;
};

}  // namespace perfemu
