// RAM of a machine that goes on in another process.
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "archive.hpp"
#include "memory/memory.hpp"

namespace perfemu {
namespace {

// Fewer zeroes are taken along, so that the host has few mappings to make.
constexpr uint64_t FEWEST_ZERO_FRAMES = 64;

bool is_zero(const uint8_t* frame) { return !frame[0] && !std::memcmp(frame, frame + 1, PAGE_SIZE - 1); }

}  // namespace

void PhysicalMemory::archive(Archive& state) {
    enum : uint8_t { CODE = 1, EXECUTABLE = 2, CHANGEABLE = 4 };
    std::vector<uint8_t> known(frames_.size());
    for (size_t i = 0; i < frames_.size(); i++)
        known[i] = static_cast<uint8_t>((frames_[i].holds_code ? CODE : 0) | (frames_[i].executable ? EXECUTABLE : 0) |
                                        (frames_[i].changeable ? CHANGEABLE : 0));
    state(known, spaces_);
    if (!state.is_loading()) return;
    for (size_t i = 0; i < frames_.size(); i++) {
        frames_[i].holds_code = known[i] & CODE;
        frames_[i].executable = known[i] & EXECUTABLE;
        frames_[i].changeable = known[i] & CHANGEABLE;
    }
    code_generation_++;
    watch_generation_++;
}

PhysicalMemory::Stretch PhysicalMemory::next_used(uint64_t first) const {
    const uint64_t end = frames_.size();
    auto zero = [this](uint64_t number) { return is_zero(arena_ + (number << PAGE_SHIFT)); };
    while (first < end && zero(first)) first++;
    uint64_t behind = first;
    for (uint64_t at = first; at < end && at < behind + FEWEST_ZERO_FRAMES; at++)
        if (!zero(at)) behind = at + 1;
    return {first, behind - first};
}

void PhysicalMemory::map_file(int descriptor, uint64_t offset, Frame first, uint32_t count) {
    check(first, count);
    const uint64_t bytes = uint64_t{count} << PAGE_SHIFT;
    struct stat status;
    if (fstat(descriptor, &status)) throw std::system_error(errno, std::generic_category(), "fstat");
    const auto size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    if (!S_ISREG(status.st_mode) || offset & PAGE_MASK || offset > size || bytes > size - offset)
        throw std::invalid_argument("the file does not have these frames");
    void* mapped = mmap(host(first), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, descriptor,
                        static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
}

}  // namespace perfemu
