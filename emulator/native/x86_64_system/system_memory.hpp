// Loads and stores that the processor makes at linear addresses beside those of the engine: descriptors, task states,
// stacks.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "x86_64_system/page_tables.hpp"

namespace perfemu::x86_64 {

class SystemMemory {
  public:
    SystemMemory(std::shared_ptr<PhysicalMemory> memory, GuestRam ram, State& state)
        : tables_(std::make_shared<PageTables>(std::move(memory), ram, state)), state_(state) {}

    const std::shared_ptr<PageTables>& tables() const { return tables_; }

    // Up to eight bytes. Both raise page faults; where no RAM is, ones are read, and nothing is kept.
    uint64_t load(uint64_t address, unsigned bytes, Level level) const {
        std::array<uint8_t, 8> data{};
        each_page(address, bytes, level, READ, [&](uint8_t* host, unsigned at, unsigned count) {
            host ? std::memcpy(&data[at], host, count) : std::memset(&data[at], 0xff, count);
        });
        return std::bit_cast<uint64_t>(data);
    }
    void store(uint64_t address, unsigned bytes, uint64_t value, Level level) {
        const auto data = std::bit_cast<std::array<uint8_t, 8>>(value);
        check(address, bytes, level, WRITE);
        each_page(address, bytes, level, WRITE, [&](uint8_t* host, unsigned at, unsigned count) {
            if (!host) return;
            const uint64_t page = (address + at) & ~PAGE_MASK;
            const Frame frame = tables_->find(page, level, WRITE).frame;
            tables_->memory().write(frame, (address + at) & PAGE_MASK, std::span(data).subspan(at, count));
        });
    }
    bool is_ram(uint64_t address, unsigned bytes, Level level, uint8_t access) const {
        bool is_all = true;
        each_page(address, bytes, level, access, [&](uint8_t* host, unsigned, unsigned) { is_all &= host != nullptr; });
        return is_all;
    }
    // Raises what such an access would.
    void check(uint64_t address, unsigned bytes, Level level, uint8_t access) const {
        each_page(address, bytes, level, access, [](uint8_t*, unsigned, unsigned) {});
    }

  private:
    template <typename Visit>
    void each_page(uint64_t address, unsigned bytes, Level level, uint8_t access, Visit visit) const {
        for (unsigned at = 0; at < bytes;) {
            uint64_t here = address + at;
            if (!state_.is_long()) here = static_cast<uint32_t>(here);
            const auto room = static_cast<unsigned>(PAGE_SIZE - (here & PAGE_MASK));
            const unsigned count = std::min(bytes - at, room);
            const Page page = tables_->find(here, level, access);
            const bool external = !page.present && tables_->walk(here, level).fault == WalkFault::EXTERNAL;
            if (!external && (!page.present || !(page.protection & access)))
                throw Fault{Vector::PAGE_FAULT, tables_->error_code(here, level, access), here};
            visit(external ? nullptr : tables_->memory().host(page.frame) + (here & PAGE_MASK), at, count);
            at += count;
        }
    }

    std::shared_ptr<PageTables> tables_;
    const State& state_;
};

}  // namespace perfemu::x86_64
