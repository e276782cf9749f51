// ittage: as tage, for targets: the table with the longest path that knows the branch says where it goes. After
// A. Seznec: "A 64-Kbytes ITTAGE indirect branch predictor", CBP-3, 2011; with paths of 64 bits at most.
#include <cmath>

#include "predictor/indirect.hpp"

namespace perfemu {

namespace {

class Ittage : public IndirectPredictor {
  public:
    explicit Ittage(const Config& parameters) : base_(power_of_two(parameters, "base_entries", 512), 0) {
        auto tables = static_cast<unsigned>(within(parameters, "tables", 5, 1, 12));
        uint32_t entries = power_of_two(parameters, "entries", 256, 16);
        if (entries < 2) throw std::invalid_argument(parameters.path("entries") + ": 1 is too few, at least 2");
        index_bits_ = static_cast<unsigned>(std::countr_zero(entries));
        tag_mask_ = (1u << within(parameters, "tag_bits", 10, 4, 15)) - 1;
        auto shortest = static_cast<double>(within(parameters, "shortest_path", 4, 1, 64));
        auto longest =
            static_cast<double>(within(parameters, "longest_path", 64, parameters.integer("shortest_path", 4), 64));
        for (unsigned table = 0; table < tables; table++) {
            double part = tables > 1 ? static_cast<double>(table) / (tables - 1) : 0;
            auto bits = static_cast<unsigned>(shortest * std::pow(longest / shortest, part) + 0.5);
            path_masks_.push_back(~uint64_t{0} >> (64 - bits));
        }
        entries_.resize(size_t{tables} << index_bits_);
        found_.resize(tables);
    }

    bool learn(uint64_t pc, uint64_t path, uint64_t target) override {
        int provider = look_up(pc, path);
        uint64_t& base = base_[spread(pc) & (base_.size() - 1)];
        bool right;
        if (provider < 0) {
            right = base == target;
        } else {
            Entry& entry = *found_[static_cast<unsigned>(provider)].entry;
            right = entry.target == target;
            train(entry, target, alternate_target(provider, base));
        }
        base = target;
        if (!right) allocate(static_cast<unsigned>(provider + 1), target);
        return right;
    }

    void archive(Archive& state) override { state(base_, entries_, random_); }

  private:
    struct Entry {
        uint64_t target = 0;
        uint32_t tag = ~0u;      // which none is
        uint8_t confidence = 0;  // 0..3
        bool useful = false;     // it was right where the alternate was wrong

        void archive(Archive& state) { state(target, tag, confidence, useful); }
    };
    static constexpr uint8_t MOST_CONFIDENT = 3;

    struct Found {
        Entry* entry;
        uint32_t tag;
    };

    // Where each table keeps this branch on this path; returns the last that has it, or -1.
    int look_up(uint64_t pc, uint64_t path) {
        int provider = -1;
        for (unsigned table = 0; table < found_.size(); table++) {
            uint64_t hash = (spread(pc) * 0x9E37'79B9'7F4A'7C15 ^ (path & path_masks_[table])) * 0xD6E8'FEB8'6659'FD93;
            hash ^= hash >> 32;
            Found& found = found_[table];
            found.entry = &entries_[(size_t{table} << index_bits_) + (hash & ((1u << index_bits_) - 1))];
            found.tag = static_cast<uint32_t>(hash >> 40) & tag_mask_;
            if (found.entry->tag == found.tag) provider = static_cast<int>(table);
        }
        return provider;
    }

    uint64_t alternate_target(int provider, uint64_t base) const {
        for (int table = provider - 1; table >= 0; table--) {
            const Found& found = found_[static_cast<unsigned>(table)];
            if (found.entry->tag == found.tag) return found.entry->target;
        }
        return base;
    }

    static void train(Entry& entry, uint64_t target, uint64_t alternate) {
        if (entry.target == target) {
            entry.confidence += entry.confidence < MOST_CONFIDENT;
            if (alternate != target) entry.useful = true;
        } else if (entry.confidence > 0) {
            entry.confidence--;
        } else {
            entry.target = target;
            entry.useful = false;
        }
    }

    // In the first table with a longer path, or, by chance, the one behind it, so that branches that want the same
    // entry do not go on to throw each other out.
    void allocate(unsigned first, uint64_t target) {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        random_ ^= random_ << 5;
        if (first + 1 < found_.size()) first += random_ & 1;
        for (unsigned table = first; table < found_.size(); table++) {
            if (!found_[table].entry->useful) {
                *found_[table].entry = {target, found_[table].tag, 0, false};
                return;
            }
        }
        for (unsigned table = first; table < found_.size(); table++) found_[table].entry->useful = false;
    }

    std::vector<uint64_t> base_;  // the last target, without tags
    std::vector<Entry> entries_;  // one table behind the other
    std::vector<uint64_t> path_masks_;
    std::vector<Found> found_;  // of the branch at hand
    unsigned index_bits_;
    uint32_t tag_mask_;
    uint32_t random_ = 1;
};

IndirectPredictor::Row registered("ittage", [](const Config& parameters) {
    return std::unique_ptr<IndirectPredictor>(new Ittage(parameters));
});

}  // namespace

}  // namespace perfemu
