// A pipeline's state as bytes: numbers of any size, of which small ones take one byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace perfemu {

class StateWriter {
  public:
    // Seven bits in each byte, the lowest first; the eighth says that more follow.
    [[gnu::always_inline]] void put(uint64_t number) {
        for (; number > 0x7F; number >>= 7) bytes_.push_back(static_cast<uint8_t>(number | 0x80));
        bytes_.push_back(static_cast<uint8_t>(number));
    }
    void clear() { bytes_.clear(); }
    size_t size() const { return bytes_.size(); }
    void truncate(size_t size) { bytes_.resize(size); }
    std::span<const uint8_t> bytes() const { return bytes_; }

  private:
    std::vector<uint8_t> bytes_;
};

class StateReader {
  public:
    explicit StateReader(std::span<const uint8_t> bytes) : next_(bytes.data()) {}

    uint64_t get() {
        uint64_t number = 0;
        for (unsigned shift = 0;; shift += 7) {
            number |= uint64_t{*next_ & 0x7FU} << shift;
            if (*next_++ < 0x80) return number;
        }
    }

  private:
    const uint8_t* next_;
};

}  // namespace perfemu
