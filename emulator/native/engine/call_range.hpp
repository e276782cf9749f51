// A CODE hook whose range can be changed while the engine runs.
//
// The engine puts a call before each instruction that lies in the hook's range when it translates a block. Its API
// gives a hook one range for life; the range is kept in the struct behind the hook's handle, where it is found by its
// own values.
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

namespace perfemu {

class CallRange {
  public:
    using Callback = void (*)(uc_engine*, uint64_t pc, uint32_t size, void* user);
    CallRange(uc_engine* engine, Callback callback, void* user);

    // Whether the range was found. If not, every instruction calls.
    bool adjustable() const { return begin_ != nullptr; }
    // From now on the instructions from `first` to `last`, both included, get calls when they are translated.
    void set(uint64_t first, uint64_t last);
    void set_nowhere();
    void set_everywhere();

  private:
    uint64_t* begin_ = nullptr;
    uint64_t* end_ = nullptr;
};

}  // namespace perfemu
