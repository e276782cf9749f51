#include "engine/translated_calls.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "engine/function.hpp"

namespace perfemu {
namespace {

constexpr uint8_t CALL_NEAR[] = {0xE8}, CALL_WORD[] = {0xFF, 0x15};  // a distance follows
// MOV EAX of the same, which a call leaves to whom it calls: as if nothing was there.
constexpr uint8_t PASS_NEAR[] = {0xB8}, PASS_WORD[] = {0x8B, 0x05};
constexpr uint8_t LOAD_ENGINE[] = {0x48, 0xBF};        // MOV RDI: its address follows
constexpr uint8_t FIND_ENGINE[] = {0x48, 0x8D, 0x3D};  // LEA RDI: its distance follows
constexpr uint8_t NO_DELAY_SLOT[] = {0x33, 0xF6};      // XOR ESI, ESI

// Reads what stands there, piece by piece.
class Code {
  public:
    explicit Code(const uint8_t* at) : at_(at) {}

    // Goes on behind them if they are there.
    template <size_t SIZE>
    bool has(const uint8_t (&expected)[SIZE]) {
        if (std::memcmp(at_, expected, SIZE) != 0) return false;
        at_ += SIZE;
        return true;
    }
    template <typename Value>
    Value value() {
        Value value;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    const uint8_t* skip(size_t bytes) { return std::exchange(at_, at_ + bytes); }
    const uint8_t* at_distance() {
        const auto distance = value<int32_t>();
        return at_ + distance;
    }
    const void* engine() {
        if (has(LOAD_ENGINE)) return value<const void*>();
        return has(FIND_ENGINE) ? at_distance() : nullptr;
    }

  private:
    const uint8_t* at_;
};

// The call that returns there.
const uint8_t* call_before(const uint8_t* return_address) {
    constexpr size_t NEAR_BYTES = sizeof CALL_NEAR + sizeof(int32_t), WORD_BYTES = sizeof CALL_WORD + sizeof(int32_t);
    return return_address - (*(return_address - NEAR_BYTES) == CALL_NEAR[0] ? NEAR_BYTES : WORD_BYTES);
}

}  // namespace

// Where a call says which function it calls: as a distance in the instruction, if that is near, else in a word behind
// the block's code.
struct TranslatedCalls::Callee {
    uint8_t* opcode;
    uint8_t* place;
    bool near;
    bool calls;  // else it passes on

    static std::optional<Callee> read(Code& code) {
        auto* opcode = const_cast<uint8_t*>(code.skip(0));
        for (bool calls : {true, false}) {
            if (code.has(calls ? CALL_NEAR : PASS_NEAR))
                return Callee{opcode, const_cast<uint8_t*>(code.skip(sizeof(int32_t))), true, calls};
            if (code.has(calls ? CALL_WORD : PASS_WORD))
                return Callee{opcode, const_cast<uint8_t*>(code.at_distance()), false, calls};
        }
        return {};
    }
    const void* get() const {
        Code code(place);
        return near ? code.at_distance() : code.value<const void*>();
    }
    bool reaches(const void* function) const {
        return !near || distance(function) == static_cast<int32_t>(distance(function));
    }
    void set(const void* function) const {
        if (near) {
            const auto value = static_cast<int32_t>(distance(function));
            std::memcpy(place, &value, sizeof value);
        } else {
            std::memcpy(place, &function, sizeof function);
        }
    }
    void set_calls(bool now) const {
        if (near)
            std::memcpy(opcode, now ? CALL_NEAR : PASS_NEAR, sizeof CALL_NEAR);
        else
            std::memcpy(opcode, now ? CALL_WORD : PASS_WORD, sizeof CALL_WORD);
    }

  private:
    int64_t distance(const void* function) const {
        return static_cast<const uint8_t*>(function) - (place + sizeof(int32_t));
    }
};

struct TranslatedCalls::Callees {
    Callee hook, check;
};

TranslatedCalls::TranslatedCalls(uc_engine* engine, uc_arch arch, const void* hook) : engine_(engine), hook_(hook) {
#ifdef __x86_64__
    const char* name = arch == UC_ARCH_ARM64 ? "helper_check_exit_request_aarch64" : "helper_check_exit_request_x86_64";
    check_ = reinterpret_cast<Check>(const_cast<void*>(engine_function(name)));
    usable_ = check_ != nullptr;
#else
    (void)arch;
#endif
}

// Null if no translation's calls are there.
std::optional<TranslatedCalls::Callees> TranslatedCalls::callees(const void* return_address) {
    const auto* after = static_cast<const uint8_t*>(return_address);
    Code code(call_before(after));
    const std::optional<Callee> hook = Callee::read(code);
    if (!hook || !hook->calls || code.engine() != engine_ || !code.has(NO_DELAY_SLOT)) return {};
    const std::optional<Callee> check = Callee::read(code);
    if (!check || !writable(after, *hook) || !writable(after, *check)) return {};
    return Callees{*hook, *check};
}

bool TranslatedCalls::redirect(const void* return_address, const void* entry) {
    if (!usable_) return false;
    const std::optional<Callees> call = callees(return_address);
    if (!call || call->hook.get() != hook_ || !call->hook.reaches(entry)) return false;
    if (!call->check.calls || call->check.get() != reinterpret_cast<const void*>(check_)) return false;
    call->hook.set(entry);
    call->check.set_calls(false);
    return true;
}

void TranslatedCalls::restore(const void* return_address, const void* entry) {
    const std::optional<Callees> call = callees(return_address);
    if (!call || call->hook.get() != entry) return;
    call->hook.set(hook_);
    call->check.set_calls(true);
}

// Whether both lie in one mapping of the engine's code.
bool TranslatedCalls::writable(const uint8_t* code, const Callee& callee) {
    const auto first = reinterpret_cast<uintptr_t>(code), last = reinterpret_cast<uintptr_t>(callee.place);
    if (first < code_begin_ || first >= code_end_) {
        std::ifstream mappings("/proc/self/maps");
        for (std::string line; std::getline(mappings, line);) {
            uintptr_t begin = 0, end = 0;
            char permissions[5] = "";
            if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) != 3) continue;
            if (first < begin || first >= end) continue;
            if (permissions[1] == 'w' && permissions[2] == 'x') {
                code_begin_ = begin;
                code_end_ = end;
            }
            break;
        }
    }
    const bool in_code = first >= code_begin_ && first < code_end_;
    if (!in_code) usable_ = false;  // it is not as we think
    return in_code && last >= code_begin_ && last < code_end_;
}

}  // namespace perfemu
