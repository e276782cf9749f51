// What has been stored into frames that hold code, for those cores whose engines have not heard of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace perfemu {

// A log, which each reader reads from where it has stopped. Not for ever: who comes too late must expect everything.
class StoresIntoCode {
  public:
    struct Store {
        uint64_t physical, end;
        const void* by;  // the core, which knows; null: a device
    };

    // Of one writer in one go, what is near to what was written before is one with it.
    void note(uint64_t physical, uint64_t size, const void* by) {
        const uint64_t end = physical + size;
        for (size_t i = stores_.size(); i > joined_from_; i--) {
            Store& near = stores_[i - 1];
            if (near.by != by || physical > near.end + NEAR || near.physical > end + NEAR) continue;
            near.physical = std::min(near.physical, physical);
            near.end = std::max(near.end, end);
            return;
        }
        if (stores_.size() == MOST) {
            forgotten_ += stores_.size();
            stores_.clear();
            joined_from_ = 0;
        }
        stores_.push_back({physical, end, by});
        joined_from_ = std::max(joined_from_, stores_.size() - std::min(stores_.size(), MOST_LOOKED_AT));
    }
    // Where a reader is who has read all. What was stored until now has been, or will be, read as it is.
    uint64_t position() {
        joined_from_ = stores_.size();
        return forgotten_ + stores_.size();
    }
    // `read(store)` for each since that position; false where some are not there any more.
    template <typename Read>
    bool each_since(uint64_t position, Read read) const {
        if (position < forgotten_) return false;
        for (size_t i = position - forgotten_; i < stores_.size(); i++) read(stores_[i]);
        return true;
    }

  private:
    static constexpr uint64_t NEAR = 64;  // bytes
    static constexpr size_t MOST = 1 << 16, MOST_LOOKED_AT = 8;

    std::vector<Store> stores_;
    uint64_t forgotten_ = 0;
    size_t joined_from_ = 0;  // those from there on have no reader yet
};

}  // namespace perfemu
