// A list that is made once and lies, if it is short, in its owner: on the cache line that the host has already fetched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace perfemu {

// Its owner knows how many there are.
template <typename T, size_t IN_PLACE>
class ShortList {
  public:
    ShortList() = default;
    ShortList(const ShortList&) = delete;
    ShortList& operator=(const ShortList&) = delete;
    ~ShortList() { drop(); }

    void assign(std::span<const T> items) {
        drop();
        items_ = items.size() > IN_PLACE ? new T[items.size()] : in_place_;
        std::ranges::copy(items, items_);
    }
    const T* data() const { return items_; }

  private:
    void drop() {
        if (items_ != in_place_) delete[] items_;
    }

    T* items_ = in_place_;
    T in_place_[IN_PLACE];
};

}  // namespace perfemu
