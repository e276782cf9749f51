// What an x86-64 processor has been through, for people: the exceptions and software interrupts that its instructions
// have made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "archive.hpp"

namespace perfemu::x86_64 {

struct TakenException {
    uint64_t cycle, rip;  // RIP as the handler finds it
    unsigned cpl, vector;
    std::optional<uint32_t> error;
    std::optional<uint64_t> address;  // CR2, of page faults
    bool software;                    // INT n

    void archive(Archive& state) { state(cycle, rip, cpl, vector, error, address, software); }
};

// The last few of them, also those that could not be delivered.
class TakenExceptions {
  public:
    using Hear = std::function<void(const TakenException&)>;
    static constexpr size_t MOST = 8;

    void archive(Archive& state) {
        for (TakenException& row : rows_) row.archive(state);
        state(count_);
    }
    void note(const TakenException& taken) {
        rows_[count_++ % MOST] = taken;
        if (hear_) hear_(taken);
    }
    // The last one last.
    std::vector<TakenException> rows() const {
        std::vector<TakenException> found;
        for (uint64_t i = count_ - std::min<uint64_t>(count_, MOST); i < count_; i++) found.push_back(rows_[i % MOST]);
        return found;
    }
    // Told of each before its handler begins.
    void hear(Hear hear) { hear_ = std::move(hear); }

  private:
    TakenException rows_[MOST]{};
    uint64_t count_ = 0;
    Hear hear_;
};

}  // namespace perfemu::x86_64
