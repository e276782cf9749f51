#include "engine/call_range.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace perfemu {

namespace {
constexpr uint64_t FIRST_MARK = 0x5ea7'1111'2222'3330, LAST_MARK = 0x5ea7'4444'5555'6660;
constexpr size_t STRUCT_WORDS = 8;                            // of the engine's struct hook
constexpr uint64_t EVERYWHERE_BEGIN = 1, EVERYWHERE_END = 0;  // an empty range is the API's way to say everything
}  // namespace

CallRange::CallRange(uc_engine* engine, Callback callback, void* user) {
    uc_hook handle = 0;
    auto add = [&](uint64_t begin, uint64_t end) {
        uc_err error = uc_hook_add(engine, &handle, UC_HOOK_CODE, reinterpret_cast<void*>(callback), user, begin, end);
        if (error != UC_ERR_OK) throw std::runtime_error(std::string("uc_hook_add: ") + uc_strerror(error));
    };
    add(FIRST_MARK, LAST_MARK);
    auto* words = reinterpret_cast<uint64_t*>(handle);
    for (size_t at = 0; at + 1 < STRUCT_WORDS && !begin_; at++) {
        if (words[at] != FIRST_MARK || words[at + 1] != LAST_MARK) continue;
        begin_ = &words[at];
        end_ = &words[at + 1];
    }
    if (adjustable()) {
        set_nowhere();
        return;
    }
    uc_hook_del(engine, handle);
    add(EVERYWHERE_BEGIN, EVERYWHERE_END);
}

void CallRange::set(uint64_t first, uint64_t last) {
    *begin_ = first;
    *end_ = last;
}

// No instruction lies at the last address.
void CallRange::set_nowhere() { set(~uint64_t{0}, ~uint64_t{0}); }

void CallRange::set_everywhere() { set(EVERYWHERE_BEGIN, EVERYWHERE_END); }

}  // namespace perfemu
