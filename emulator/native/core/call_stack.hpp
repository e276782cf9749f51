// The exact call stack of a task: which calls have not returned.
//
// A frame is pushed by each call, and popped when execution arrives behind that call with the stack pointer of then.
// All else is told by the stack pointer, too. Frames that it has left upwards are gone: longjmp, exceptions. Where it
// is on no stack that is known here a new one begins, without frames, and the old one is set aside until somebody
// returns to its last call: coroutines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/op.hpp"

namespace perfemu {

struct CalledFrame {
    uint64_t return_address;
    uint64_t stack_pointer;  // when it has returned there
    bool operator==(const CalledFrame&) const = default;
};

// How many of those bytes there are, in the memory of the task that executes.
using ReadMemory = std::function<uint64_t(uint64_t address, std::span<uint8_t> into)>;

// The stacks of one memory on which no task executes. Those that were set aside first are forgotten if there are too
// many.
class SetAsideStacks {
  public:
    struct Taken {
        std::vector<CalledFrame> frames;
        size_t number;  // of the one that was looked for
    };
    // `waiting`: numbers of the frames to which somebody may return.
    void put(std::vector<CalledFrame> frames, std::vector<size_t> waiting);
    // The stack that waits for a return there.
    std::optional<Taken> take(CalledFrame frame);
    // ... to that address, and has been moved meanwhile, so that the stack pointer is this one: the return addresses
    // lie where they must then. Its frames are as they are now.
    std::optional<Taken> take_moved(CalledFrame now, uint64_t pushed, const ReadMemory& read);

  private:
    static constexpr size_t MOST_STACKS = 1 << 12, MOST_FRAMES = 1 << 18;
    static constexpr size_t MOST_LOOKED_AT = 1 << 10;  // stacks that may have been moved
    static constexpr size_t MOST_SEARCHED = 1 << 12;  // frames' return addresses: a guest may have many that look alike

    struct Stack {
        std::vector<CalledFrame> frames;
        std::vector<size_t> waiting;
    };
    struct Place {
        uint64_t stack;
        size_t number;
    };
    struct Hash {
        size_t operator()(const CalledFrame& frame) const {
            return frame.return_address * 0x9E3779B97F4A7C15 ^ frame.stack_pointer;
        }
    };
    Stack remove(std::map<uint64_t, Stack>::iterator stack);

    std::map<uint64_t, Stack> stacks_;  // in the order in which they were set aside
    uint64_t next_ = 0;
    size_t frames_ = 0;
    std::unordered_map<CalledFrame, Place, Hash> waiting_;
};

class CallStack {
  public:
    static constexpr size_t MOST_FRAMES = 1 << 17;  // then the outer half is forgotten

    // `pushed`: the bytes that a call puts onto the stack. None: there is a link register.
    explicit CallStack(uint64_t pushed) : CallStack(pushed, std::make_shared<SetAsideStacks>()) {}
    CallStack(const CallStack&) = delete;
    // For the child of a task. `shares_memory`: both have the same stacks.
    std::shared_ptr<CallStack> fork(bool shares_memory, bool has_new_stack) const;

    // A call has been made, whose function begins with this stack pointer. False: not as most are; see
    // `call_elsewhere`.
    bool call(uint64_t return_address, uint64_t stack_pointer) {
        const uint64_t behind = stack_pointer + pushed_;
        if (behind + pushed_ > top_->stack_pointer || top_ == last_) [[unlikely]]
            return false;
        *++top_ = {return_address, behind};
        return true;
    }
    void call_elsewhere(uint64_t return_address, uint64_t stack_pointer);
    // A return has led there. False: not from the last call; see `land`.
    bool returns(uint64_t to, uint64_t stack_pointer) {
        if (*top_ != CalledFrame{to, stack_pointer}) [[unlikely]]
            return false;
        --top_;
        return true;
    }
    // Whether the stack pointer has been set, so that the next jump may lead to another stack.
    bool expects_jump() const { return expects_jump_; }
    void expect_jump(bool expected) { expects_jump_ = expected; }

    struct Landing {
        Transfer by;
        uint64_t pc, stack_pointer;
        bool is_behind_call;  // the instruction before
        uint64_t link_register = 0;
        ReadMemory read = [](uint64_t, std::span<uint8_t>) { return uint64_t{0}; };
    };
    // Execution goes on there, otherwise than behind the last call.
    void land(const Landing& at);
    // A signal's handler begins: which returns to `trampoline`, and that to where the task was interrupted.
    void enter_handler(CalledFrame interrupted, CalledFrame trampoline);
    // ... has ended. Its task goes on there, as a rule where it was interrupted, or at a function that its handler has
    // made it call: `caller`, where that returns to.
    void leave_handler(uint64_t pc, uint64_t stack_pointer, CalledFrame caller);

    // The return addresses of those that have called, the last one first.
    std::vector<uint64_t> chain(uint64_t stack_pointer, size_t limit) const;

  private:
    static constexpr uint64_t NEAR = 4096;  // bytes: of one frame, as a rule

    CallStack(uint64_t pushed, std::shared_ptr<SetAsideStacks> set_aside);
    size_t depth() const { return static_cast<size_t>(top_ - frames_.data()); }
    void set_depth(size_t depth) { top_ = frames_.data() + depth; }
    void hold(std::vector<CalledFrame> frames, size_t depth);
    void drop_left(uint64_t stack_pointer);
    void make_room();
    void push(CalledFrame frame);
    void note_end();
    bool is_within_function(const Landing& at) const;
    bool takes_arguments(const Landing& at) const;
    bool follow_move(const Landing& at);
    size_t find_left(uint64_t stack_pointer) const;
    std::vector<size_t> last_of_runs() const;
    std::vector<size_t> waiting() const;
    void begin_another();

    const uint64_t pushed_;
    CalledFrame* top_;  // the first one is none, and above any stack
    CalledFrame* last_;
    std::vector<CalledFrame> frames_;
    std::vector<size_t> ends_;  // frames behind which another stack has begun, without a return; some perhaps no more
    bool expects_jump_ = false;
    std::shared_ptr<SetAsideStacks> set_aside_;
};

}  // namespace perfemu
