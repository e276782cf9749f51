// REP: iterations of a string instruction, of which one micro-op moves as many as have room in its bytes.
#pragma once

#include <utility>

#include "timing/execution.hpp"

namespace perfemu {

class Repeats {
  public:
    explicit Repeats(const Config& pipeline)
        : start_cycles(checked(pipeline, "repeat_start_cycles", 0, 1000, 0)),
          bytes_(checked(pipeline, "repeat_bytes", 0, 4096, 0)) {}

    // Whether the iteration at hand is the instruction's first.
    bool begin() {
        if (std::exchange(running_, true)) return false;
        left_ = 0;
        return true;
    }
    void end() { running_ = false; }
    // Whether the last micro-op moves these bytes, too; else there is one more.
    bool moved(unsigned bytes) {
        if (bytes && left_ >= bytes) {
            left_ -= bytes;
            return true;
        }
        left_ = bytes_ > bytes ? bytes_ - bytes : 0;
        return false;
    }

    const unsigned start_cycles;

  private:
    unsigned bytes_, left_ = 0;
    bool running_ = false;
};

}  // namespace perfemu
