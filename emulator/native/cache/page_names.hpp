// What caches call pages by where there are several address spaces: by what is in memory, as machines do, and not by
// where a process sees it.
//
// A page's name stands for its number in caches. A frame is called by where the first space saw it first, so that one
// process alone finds what it would find by virtual addresses, and lines meet in sets as if Linux coloured pages.
// Frames of further spaces get other names, in other sets; what spaces share has one name for all. Where a guest's own
// kernel keeps the page tables, a page is called by its frame's number: its physical address.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "memory/memory.hpp"

namespace perfemu {

class PageNames {
  public:
    static constexpr unsigned PAGE_BITS = 36;  // of a page's number in a space
    static constexpr uint64_t PAGES = (uint64_t{1} << PAGE_BITS) - 1;

    // Some core turns to this space. Returns its number, by which translations are told apart: 0 for the first.
    uint64_t enter(const std::shared_ptr<AddressTranslation>& space);
    // Whether there has ever been more than one. As long as there is not, every page is called by its own number.
    bool several() const { return several_; }
    // Grows when a page may be called otherwise than before, though its mapping has not changed.
    uint64_t generation() const { return generation_; }
    // Of a page of the space with that number.
    uint64_t name(const AddressTranslation& space, uint64_t number, uint64_t page);

  private:
    static constexpr uint64_t NUMBERS = 1 << 15;
    struct Named {
        uint64_t name;
        uint64_t allocation;  // of the frame: it is another's when it has been free
    };

    static uint64_t own_name(uint64_t number, uint64_t page);
    void call(Frame frame, Named named);

    std::weak_ptr<AddressSpace> first_;
    bool several_ = false;
    bool by_number_ = false;  // a frame's own: guests with page tables of their own have laid them out themselves
    uint64_t generation_ = 0;
    std::unordered_map<uint64_t, uint64_t> numbers_;  // by AddressTranslation::id
    std::unordered_map<Frame, Named> names_;
    std::unordered_map<uint64_t, Frame> called_;  // by name
};

}  // namespace perfemu
