// The return address stack.
#pragma once

#include <cstdint>
#include <vector>

#include "archive.hpp"
#include "predictor/tables.hpp"

namespace perfemu {

// A ring: a call beyond its depth overwrites the oldest return, which is then mispredicted when its turn comes.
class ReturnStack {
  public:
    // Of `branch.return_stack` entries. Without, every return is predicted right.
    explicit ReturnStack(const Config& branch) {
        if (branch.has("return_stack"))
            entries_.resize(static_cast<size_t>(within(branch, "return_stack", 0, 1, 4096)));
    }

    void push(uint64_t address) {
        if (entries_.empty()) return;
        top_ = top_ + 1 == entries_.size() ? 0 : top_ + 1;
        entries_[top_] = address;
    }

    bool expects(uint64_t target) const { return entries_.empty() || entries_[top_] == target; }
    // A return went to `target`. Returns whether that stood on the top.
    bool pop(uint64_t target) {
        if (entries_.empty()) return true;
        bool right = expects(target);
        top_ = top_ == 0 ? entries_.size() - 1 : top_ - 1;
        return right;
    }

    void archive(Archive& state) {
        state(entries_, top_);
        state.expect(top_ < entries_.size() || (entries_.empty() && !top_));
    }

  private:
    std::vector<uint64_t> entries_;
    size_t top_ = 0;
};

}  // namespace perfemu
