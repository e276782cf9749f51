// Constant strides of single instructions: a table by PC, as Chen and Baer, "Effective Hardware-Based Data Prefetching
// for High-Performance Processors", IEEE Trans. Computers 44(5), 1995.
//
// After `confidence` repetitions of a stride, `degree` strides are brought, the first `distance` strides ahead. An
// instruction that walks through a line in small steps is told once per line; so strides are compared in bytes and,
// if they differ there, in lines.
#include <bit>

#include "cache/prefetcher.hpp"

namespace perfemu {

class Stride final : public Prefetcher {
  public:
    Stride(const Config& parameters, unsigned line_shift)
        : page_(parameters, line_shift), line_shift_(line_shift),
          degree_(prefetcher_parameter(parameters, "degree", 2)),
          distance_(prefetcher_parameter(parameters, "distance", 1)),
          confidence_(prefetcher_parameter(parameters, "confidence", 2)) {
        check_prefetcher_keys(parameters, {"entries", "degree", "distance", "confidence"});
        uint32_t entries = prefetcher_parameter(parameters, "entries", 64);
        if (!std::has_single_bit(entries))
            throw std::invalid_argument(parameters.path("entries") + ": " + std::to_string(entries) +
                                        " is not a power of two");
        table_.resize(entries);
    }

    void operate(const CacheAccess& access, const CacheResult& result, std::vector<uint64_t>& lines) override {
        Entry& entry = table_[(access.pc ^ access.pc >> 6) & (table_.size() - 1)];
        if (entry.pc != access.pc) {
            entry = {.pc = access.pc, .address = access.address};
            return;
        }
        int64_t bytes = static_cast<int64_t>(access.address - entry.address);
        int64_t step = static_cast<int64_t>(result.line - (entry.address >> line_shift_));
        if (step == 0) return;
        bool by_bytes = bytes == entry.bytes;
        bool repeats = by_bytes || step == entry.step;
        entry.repetitions = repeats ? entry.repetitions + (entry.repetitions < confidence_) : 0;
        entry.address = access.address;
        entry.bytes = bytes;
        entry.step = step;
        if (entry.repetitions < confidence_) return;
        uint64_t last = result.line;
        for (uint32_t ahead = distance_; ahead < distance_ + degree_; ++ahead) {
            uint64_t line = by_bytes ? (access.address + static_cast<uint64_t>(bytes) * ahead) >> line_shift_
                                     : result.line + static_cast<uint64_t>(step) * ahead;
            if (!page_.allows(result.line, line)) return;
            if (line != last) lines.push_back(line);
            last = line;
        }
    }

    void archive(Archive& state) override { state(table_); }

  private:
    struct Entry {
        uint64_t pc = ~uint64_t{0};
        uint64_t address = 0;  // last
        int64_t bytes = 0;     // from the one before
        int64_t step = 0;      // ... in lines
        uint32_t repetitions = 0;

        void archive(Archive& state) { state(pc, address, bytes, step, repetitions); }
    };

    PageBound page_;
    unsigned line_shift_;
    uint32_t degree_, distance_, confidence_;
    std::vector<Entry> table_;
};

static const Prefetcher::Row row("stride", [](const Config& parameters, unsigned line_shift) {
    return std::unique_ptr<Prefetcher>(std::make_unique<Stride>(parameters, line_shift));
});

}  // namespace perfemu
