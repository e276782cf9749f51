#include "core/call_stack.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace perfemu {

namespace {

constexpr CalledFrame NOBODY{0, ~uint64_t{0}};
constexpr size_t FIRST_ROOM = 256;
constexpr uint64_t MOST_ARGUMENTS = 0xFFFF;  // bytes that x86's RET takes from the stack
constexpr size_t MOST_LEFT = 64;             // frames that a call is compared with

// The first of the frames that lie on one stack with that one.
size_t begin_of_run(std::span<const CalledFrame> frames, size_t number) {
    while (number > 1 && frames[number - 1].stack_pointer >= frames[number].stack_pointer) number--;
    return number;
}

void move_run(std::span<CalledFrame> frames, size_t last, uint64_t moved) {
    for (size_t number = begin_of_run(frames, last); number <= last; number++) frames[number].stack_pointer += moved;
}

// Whether the frame's return address lies where a stack has it that has been moved so far. Where calls push it, that is
// below the stack pointer of its return; else somewhere between that and the `inner` frame's.
bool has_return_address(CalledFrame frame, CalledFrame inner, uint64_t moved, uint64_t pushed, const ReadMemory& read) {
    std::array<uint64_t, 512> words{};
    const uint64_t begin = pushed ? frame.stack_pointer - pushed : inner.stack_pointer;
    const uint64_t bytes = std::min<uint64_t>(frame.stack_pointer - begin, sizeof words) / 8 * 8;
    const uint64_t got = read(begin + moved, {reinterpret_cast<uint8_t*>(words.data()), bytes});
    const std::span<const uint64_t> found = std::span(words).first(got / 8);
    return std::ranges::find(found, frame.return_address) != found.end();
}

}  // namespace

// ---- set aside

void SetAsideStacks::put(std::vector<CalledFrame> frames, std::vector<size_t> waiting) {
    frames_ += frames.size();
    for (const size_t number : waiting) waiting_[frames[number]] = {next_, number};
    stacks_.emplace_hint(stacks_.end(), next_++, Stack{std::move(frames), std::move(waiting)});
    while (stacks_.size() > MOST_STACKS || (frames_ > MOST_FRAMES && stacks_.size() > 1)) remove(stacks_.begin());
}

std::optional<SetAsideStacks::Taken> SetAsideStacks::take(CalledFrame frame) {
    if (waiting_.empty()) return std::nullopt;
    const auto found = waiting_.find(frame);
    if (found == waiting_.end()) return std::nullopt;
    const Place place = found->second;
    return Taken{remove(stacks_.find(place.stack)).frames, place.number};
}

std::optional<SetAsideStacks::Taken> SetAsideStacks::take_moved(CalledFrame now, uint64_t pushed,
                                                                const ReadMemory& read) {
    constexpr size_t MOST_COMPARED = 64;  // frames
    size_t looked_at = 0, searched = 0;
    for (auto stack = stacks_.end(); stack != stacks_.begin() && looked_at < MOST_LOOKED_AT; looked_at++) {
        --stack;
        const std::vector<CalledFrame>& frames = stack->second.frames;
        for (const size_t number : stack->second.waiting) {
            if (frames[number].return_address != now.return_address) continue;
            const uint64_t moved = now.stack_pointer - frames[number].stack_pointer;
            const size_t begin = std::max(begin_of_run(frames, number), number - std::min(number, MOST_COMPARED));
            size_t same = number;
            bool found = true;
            while (found && same > begin) {
                if (++searched > MOST_SEARCHED) return std::nullopt;
                found = has_return_address(frames[same - 1], frames[same], moved, pushed, read);
                same -= found;
            }
            if (!found) continue;
            Taken taken{remove(stack).frames, number};
            move_run(taken.frames, number, moved);
            return taken;
        }
    }
    return std::nullopt;
}

SetAsideStacks::Stack SetAsideStacks::remove(std::map<uint64_t, Stack>::iterator stack) {
    for (const size_t number : stack->second.waiting) {
        const auto found = waiting_.find(stack->second.frames[number]);
        if (found != waiting_.end() && found->second.stack == stack->first) waiting_.erase(found);
    }
    Stack removed = std::move(stack->second);
    frames_ -= removed.frames.size();
    stacks_.erase(stack);
    return removed;
}

// ---- the one on which the task executes

CallStack::CallStack(uint64_t pushed, std::shared_ptr<SetAsideStacks> set_aside)
    : pushed_(pushed), set_aside_(std::move(set_aside)) {
    hold({NOBODY}, 0);
}

std::shared_ptr<CallStack> CallStack::fork(bool shares_memory, bool has_new_stack) const {
    auto set_aside = shares_memory ? set_aside_ : std::make_shared<SetAsideStacks>(*set_aside_);
    std::shared_ptr<CallStack> child(new CallStack(pushed_, std::move(set_aside)));
    if (has_new_stack) return child;
    child->hold({frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(depth()) + 1}, depth());
    child->ends_ = ends_;
    return child;
}

void CallStack::hold(std::vector<CalledFrame> frames, size_t depth) {
    frames_ = std::move(frames);
    frames_.resize(std::max(frames_.size(), FIRST_ROOM));
    last_ = &frames_.back();
    set_depth(depth);
}

// Makes room for one frame.
void CallStack::make_room() {
    if (top_ != last_) return;
    const size_t now = depth();
    if (frames_.size() < MOST_FRAMES) {
        frames_.resize(2 * frames_.size());
    } else {
        const size_t dropped = now / 2;
        frames_.erase(frames_.begin() + 1, frames_.begin() + 1 + static_cast<ptrdiff_t>(dropped));
        frames_.resize(MOST_FRAMES);
        last_ = &frames_.back();
        set_depth(now - dropped);
        ends_.clear();
        return;
    }
    last_ = &frames_.back();
    set_depth(now);
}

void CallStack::push(CalledFrame frame) {
    make_room();
    *++top_ = frame;
}

// A call from above the last frame, or without room for another one: that frame was left without a return, or the
// function has taken another stack for the call.
void CallStack::call_elsewhere(uint64_t return_address, uint64_t stack_pointer) {
    const CalledFrame frame{return_address, stack_pointer + pushed_};
    drop_left(frame.stack_pointer + pushed_ - 1);
    if (frame.stack_pointer > top_->stack_pointer) note_end();
    push(frame);
}

// Another stack begins behind the last frame. As often as a guest does that and returns, no more is kept than there are
// frames.
void CallStack::note_end() {
    while (!ends_.empty() && ends_.back() >= depth()) ends_.pop_back();
    ends_.push_back(depth());
}

// Frames that are at this stack pointer or below have been left, if it is one of this stack.
void CallStack::drop_left(uint64_t stack_pointer) {
    const CalledFrame* frame = top_;
    for (size_t left = 0; left < MOST_LEFT && frame != frames_.data(); left++, frame--) {
        if (frame->stack_pointer > stack_pointer) {
            set_depth(static_cast<size_t>(frame - frames_.data()));
            return;
        }
    }
    if (frame == frames_.data() && stack_pointer - frames_[1].stack_pointer < NEAR) set_depth(0);
}

void CallStack::enter_handler(CalledFrame interrupted, CalledFrame trampoline) {
    push(interrupted);
    if (trampoline.stack_pointer > top_->stack_pointer) note_end();
    push(trampoline);
}

void CallStack::leave_handler(uint64_t pc, uint64_t stack_pointer, CalledFrame caller) {
    if (returns(pc, stack_pointer) || top_ == frames_.data()) return;
    const CalledFrame interrupted = *top_--;
    if (caller.return_address == interrupted.return_address)
        push(caller);
    else
        land({.by = Transfer::RETURN, .pc = pc, .stack_pointer = stack_pointer, .is_behind_call = false});
}

void CallStack::land(const Landing& at) {
    if (returns(at.pc, at.stack_pointer)) return;
    if (auto taken = set_aside_->take({at.pc, at.stack_pointer})) {
        begin_another();
        hold(std::move(taken->frames), taken->number - 1);
        return;
    }
    if (is_within_function(at)) return;
    if (takes_arguments(at)) {
        --top_;
        return;
    }
    if (follow_move(at)) return;
    if (at.is_behind_call) {
        if (auto taken = set_aside_->take_moved({at.pc, at.stack_pointer}, pushed_, at.read)) {
            begin_another();
            hold(std::move(taken->frames), taken->number - 1);
            return;
        }
    }
    const size_t left = find_left(at.stack_pointer);
    // Exceptions and longjmp go on in a function whose call is the outermost that has been left.
    const uint64_t above = at.stack_pointer - frames_[left].stack_pointer;
    const bool unwinds = left && (above == 0 || (at.is_behind_call && above < NEAR));
    if (unwinds)
        set_depth(left - 1);
    else
        begin_another();
}

// Whether this is a jump after all, or a return that is used as one: nothing has returned, and nothing been left.
bool CallStack::is_within_function(const Landing& at) const {
    if (top_ == frames_.data()) return false;
    const uint64_t below = top_->stack_pointer - pushed_ - at.stack_pointer;  // high if the stack pointer is above
    if (top_->stack_pointer <= at.stack_pointer) return false;
    if (below < NEAR) return true;
    if (at.by == Transfer::RETURN || pushed_) return false;
    // A link register has what this function returns to, or what the last call has returned to.
    const bool links_here =
        at.link_register == top_->return_address || (top_ != last_ && at.link_register == (top_ + 1)->return_address);
    return links_here;
}

// Whether the last call's function has returned, and taken its arguments from the stack: x86's RET with a number.
bool CallStack::takes_arguments(const Landing& at) const {
    return pushed_ && at.by == Transfer::RETURN && top_->return_address == at.pc &&
           at.stack_pointer - top_->stack_pointer <= MOST_ARGUMENTS;
}

// A stack may be moved as a whole while its task executes on another one: Go's that have become too small. Others are
// moved while nobody executes on them: Go's that are too large.
bool CallStack::follow_move(const Landing& at) {
    if (!at.is_behind_call) return false;
    const std::vector<size_t> ends = last_of_runs();
    if (ends.size() < 2) return false;
    const size_t end = ends[ends.size() - 2];
    if (frames_[end].return_address != at.pc) return false;
    move_run(frames_, end, at.stack_pointer - frames_[end].stack_pointer);
    set_depth(end - 1);
    return true;
}

// The outermost of the frames that have been left, if that stack pointer is within a stack of these; else 0.
size_t CallStack::find_left(uint64_t stack_pointer) const {
    bool leaves = false;  // the frame before
    for (size_t number = depth(); number > 0; number--) {
        const CalledFrame& frame = frames_[number];
        const bool left = frame.stack_pointer <= stack_pointer;
        const bool ends = number == depth() || frame.stack_pointer < frames_[number + 1].stack_pointer;
        if (!ends && leaves && !left) return number + 1;
        leaves = left;
    }
    return leaves ? 1 : 0;
}

// The frames behind which another stack has begun, and the last one.
std::vector<size_t> CallStack::last_of_runs() const {
    std::vector<size_t> numbers;
    for (const size_t end : ends_) {
        if (end == 0 || end >= depth() || (!numbers.empty() && end <= numbers.back())) continue;
        if (frames_[end + 1].stack_pointer > frames_[end].stack_pointer) numbers.push_back(end);
    }
    numbers.push_back(depth());
    return numbers;
}

// Those to which somebody may return who comes from elsewhere: what leaves a stack may be called by what is returned
// from, as setcontext is by swapcontext.
std::vector<size_t> CallStack::waiting() const {
    constexpr size_t MOST_IN_BETWEEN = 3;
    std::vector<size_t> numbers;
    for (const size_t last : last_of_runs())
        for (size_t number = last; number > 0 && last - number <= MOST_IN_BETWEEN; number--) numbers.push_back(number);
    return numbers;
}

void CallStack::begin_another() {
    if (top_ == frames_.data()) return;
    std::vector<size_t> numbers = waiting();
    // A copy, which has no more room than it needs.
    set_aside_->put({frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(depth()) + 1}, std::move(numbers));
    ends_.clear();
    set_depth(0);
}

std::vector<uint64_t> CallStack::chain(uint64_t stack_pointer, size_t limit) const {
    // Not yet seen to be left: the next call or return will tell.
    const CalledFrame* frame = top_;
    while (frame != frames_.data() && frame->stack_pointer < stack_pointer + pushed_) frame--;
    if (frame == frames_.data()) frame = top_;
    std::vector<uint64_t> addresses;
    for (; frame != frames_.data() && addresses.size() < limit; frame--) addresses.push_back(frame->return_address);
    return addresses;
}

}  // namespace perfemu
