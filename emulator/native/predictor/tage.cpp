// tage: tagged tables, each indexed with the address and a longer part of the history than the one before; the longest
// that knows the branch predicts. A. Seznec, P. Michaud: "A case for (partially) TAgged GEometric history length branch
// prediction", JILP 8, 2006; with the loop predictor of L-TAGE, without a statistical corrector.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "predictor/direction.hpp"
#include "predictor/loop_predictor.hpp"

namespace perfemu {

namespace {

constexpr unsigned DEFAULT_TABLES = 8;
constexpr unsigned MOST_TABLES = 16;

// A number for each table, computed all at once (an extension that GCC and clang share).
template <unsigned TABLES>
struct Vector;
template <>
struct Vector<8> {
    typedef uint16_t Lanes __attribute__((vector_size(16)));
};
template <>
struct Vector<16> {
    typedef uint16_t Lanes __attribute__((vector_size(32)));
};
template <unsigned TABLES>
using Lanes = typename Vector<TABLES>::Lanes;

// Of each lane, the entry of `table` that it numbers.
template <unsigned TABLES, unsigned... LANE>
inline void gather(Lanes<TABLES>& result, const uint16_t* table, const Lanes<TABLES>& numbers,
                   std::integer_sequence<unsigned, LANE...>) {
    result = Lanes<TABLES>{table[numbers[LANE]]...};
}

// A bit for each lane in which the two are equal.
template <unsigned TABLES>
inline uint32_t equal_lanes(const Lanes<TABLES>& one, const Lanes<TABLES>& other, const Lanes<TABLES>& bits) {
    Lanes<TABLES> equal = reinterpret_cast<Lanes<TABLES>>(one == other) & bits;
    uint64_t words[TABLES / 4];
    memcpy(words, &equal, sizeof words);
    uint64_t all = 0;
    for (uint64_t word : words) all |= word;
    all |= all >> 32;
    return static_cast<uint16_t>(all | all >> 16);
}

// For each table, its part of the history folded to `width` bits by exclusive or: bit n of the history, from the
// newest, stands at n % width. Kept up to date as the history moves.
template <unsigned TABLES>
struct Folded {
    unsigned width = 1;
    Lanes<TABLES> values{};
    Lanes<TABLES> leaves{};  // where the oldest bit drops out
    Lanes<TABLES> mask{};    // of all `width` bits

    void set(unsigned bits, const std::vector<unsigned>& lengths) {
        width = bits;
        mask = mask + static_cast<uint16_t>((1u << bits) - 1);
        for (size_t table = 0; table < lengths.size(); table++)
            leaves[table] = static_cast<uint16_t>(1u << lengths[table] % bits);
    }

    // `bit` is the newest in every lane; `dropped` has all bits set for each table from whose part a 1 drops out.
    void push(const Lanes<TABLES>& bit, const Lanes<TABLES>& dropped) {
        Lanes<TABLES> moved = (values + values) ^ bit ^ (dropped & leaves);
        values = (moved ^ moved >> width) & mask;
    }
};

// What happened, one behind the other, each as a mask of all bits. It grows downward through a stretch of memory; at
// the end of that, what is still needed moves to the top.
class History {
  public:
    explicit History(size_t longest) : outcomes_(longest + STRETCH, 0), newest_(STRETCH), longest_(longest) {}

    void push(bool bit) {
        if (newest_ == 0) {
            std::copy_backward(outcomes_.begin(), outcomes_.begin() + static_cast<ptrdiff_t>(longest_),
                               outcomes_.end());
            newest_ = STRETCH;
        }
        outcomes_[--newest_] = static_cast<uint16_t>(-static_cast<int>(bit));
    }
    const uint16_t* newest() const { return &outcomes_[newest_]; }
    void archive(Archive& state) {
        state(outcomes_);
        state.up_to(newest_, STRETCH);
    }

  private:
    static constexpr size_t STRETCH = 4096;

    std::vector<uint16_t> outcomes_;
    size_t newest_;
    size_t longest_;  // how many are needed before the next is pushed
};

template <unsigned TABLES>  // at most
class Tage : public DirectionPredictor {
  public:
    explicit Tage(const Config& parameters)
        : base_(power_of_two(parameters, "base_entries", 8192), WEAKLY_NOT_TAKEN), loops_(parameters) {
        tables_ = static_cast<unsigned>(within(parameters, "tables", DEFAULT_TABLES, 1, TABLES));
        uint32_t entries = power_of_two(parameters, "entries", 1024, 12);
        if (entries < 4) throw std::invalid_argument(parameters.path("entries") + ": too few, at least 4");
        index_bits_ = static_cast<unsigned>(std::countr_zero(entries));
        auto tag_bits = static_cast<unsigned>(within(parameters, "tag_bits", 10, 4, 15));
        tag_mask_ = tag_mask_ + static_cast<uint16_t>((1u << tag_bits) - 1);
        useful_period_ = until_aging_ = within(parameters, "useful_period", 262144, 1, int64_t{1} << 40);
        int64_t shortest = within(parameters, "shortest_history", 4, 1, 1000);
        int64_t longest = within(parameters, "longest_history", 256, shortest, 4000);
        choose_lengths(static_cast<double>(shortest), static_cast<double>(longest));
        entry_tags_.resize(size_t{entries} * TABLES, NO_TAG);
        entries_.resize(size_t{entries} * TABLES);
        for (unsigned table = 0; table < TABLES; table++) {
            first_[table] = static_cast<uint16_t>(table);
            table_bits_[table] = table < tables_ ? static_cast<uint16_t>(1u << table) : 0;
            spacing_[table] = table < tables_ ? TABLES : 0;
        }
        index_fold_.set(index_bits_, lengths_);
        choose_tag_folds(tag_bits);
    }

    bool learn(uint64_t pc, bool taken) override {
        look_up(pc);
        bool predicted = loops_.learn(pc, taken, predicted_);
        train(taken);
        push(taken);
        return predicted;
    }

    void follow(uint64_t target) override {
        push(target_hash(target) >> 31);
        push(target_hash(target) >> 30 & 1);
    }

    // The look-up's results belong to the branch at hand, and the next one makes its own.
    void archive(Archive& state) override {
        state(until_aging_, base_, entry_tags_, entries_, loops_, trust_alternate_, random_, history_);
        state.expect(until_aging_ > 0 && until_aging_ <= useful_period_);
        state.expect(trust_alternate_ >= LEAST_TRUST && trust_alternate_ <= MOST_TRUST);
        state(index_fold_.values, tag_fold_.values, other_tag_fold_.values);
    }

  private:
    struct Entry {
        int8_t counter = 0;  // -4..3, taken from 0 up
        uint8_t useful = 0;  // 0..3
    };
    static constexpr int8_t LEAST = -4, MOST = 3;
    static constexpr int LEAST_TRUST = -8, MOST_TRUST = 7;
    static constexpr uint8_t MOST_USEFUL = 3;
    static constexpr uint16_t NO_TAG = 0xFFFF;  // tags have 15 bits at most

    // A geometric series, each longer than the one before.
    void choose_lengths(double shortest, double longest) {
        for (unsigned table = 0; table < tables_; table++) {
            double part = tables_ > 1 ? static_cast<double>(table) / (tables_ - 1) : 0;
            auto length = static_cast<unsigned>(shortest * std::pow(longest / shortest, part) + 0.5);
            if (table) length = std::max(length, lengths_.back() + 1);
            lengths_.push_back(length);
            drop_at_[table] = static_cast<uint16_t>(length);
        }
        history_ = History(lengths_.back() + 1);
    }

    // A fold cannot tell two places in the history that are a multiple of its width apart. So the tag has two, of
    // widths that have as large a common multiple with the index's as there is.
    void choose_tag_folds(unsigned tag_bits) {
        unsigned largest = 0, wide = 0, narrow = 0;
        for (unsigned one = tag_bits; one > 1; one--) {
            for (unsigned other = one - 1; other > 0; other--) {
                unsigned multiple = std::lcm(index_bits_, std::lcm(one, other));
                if (multiple <= largest) continue;
                largest = multiple;
                wide = one;
                narrow = other;
            }
        }
        tag_fold_.set(wide, lengths_);
        other_tag_fold_.set(narrow, lengths_);
    }

    Entry& entry(unsigned table) { return entries_[numbers_[table]]; }
    static bool taken_by(const Entry& entry) { return entry.counter >= 0; }
    // Just allocated, or never sure.
    static bool is_new(const Entry& entry) { return entry.useful == 0 && static_cast<uint8_t>(entry.counter + 1) <= 1; }

    // Finds provider and alternate and what they say.
    void look_up(uint64_t pc) {
        uint64_t address = spread(pc);
        auto for_index = static_cast<uint16_t>(address ^ address >> index_bits_);
        auto for_tag = static_cast<uint16_t>(target_hash(address) >> 16);
        numbers_ = ((for_index ^ index_fold_.values) & index_fold_.mask) * spacing_ + first_;
        tags_ = (for_tag ^ tag_fold_.values ^ (other_tag_fold_.values << 1)) & tag_mask_;
        Lanes<TABLES> present;
        gather<TABLES>(present, entry_tags_.data(), numbers_, std::make_integer_sequence<unsigned, TABLES>());
        uint32_t matches = equal_lanes<TABLES>(present, tags_, table_bits_);

        base_now_ = &base_[address & (base_.size() - 1)];
        predicted_ = provider_taken_ = alternate_taken_ = predicts_taken(*base_now_);
        provider_ = alternate_ = nullptr;
        provider_table_ = -1;
        if (!matches) return;
        provider_table_ = std::bit_width(matches) - 1;
        provider_ = &entry(static_cast<unsigned>(provider_table_));
        matches ^= 1u << provider_table_;
        if (matches) {
            alternate_ = &entry(static_cast<unsigned>(std::bit_width(matches) - 1));
            alternate_taken_ = taken_by(*alternate_);
        }
        provider_taken_ = taken_by(*provider_);
        predicted_ = is_new(*provider_) && trust_alternate_ >= 0 ? alternate_taken_ : provider_taken_;
    }

    void train(bool taken) {
        if (predicted_ != taken && provider_table_ < static_cast<int>(tables_) - 1 &&
            (!provider_ || provider_taken_ != taken))
            allocate(taken);
        if (provider_) {
            train_provider(taken);
        } else {
            *base_now_ = trained(*base_now_, taken);
        }
        if (--until_aging_ == 0) {
            until_aging_ = useful_period_;
            for (Entry& entry : entries_) entry.useful >>= 1;
        }
    }

    void train_provider(bool taken) {
        if (is_new(*provider_)) {
            if (provider_taken_ != alternate_taken_)
                trust_alternate_ =
                    std::clamp(trust_alternate_ + (alternate_taken_ == taken ? 1 : -1), LEAST_TRUST, MOST_TRUST);
            if (alternate_) {
                train_counter(*alternate_, taken);
            } else {
                *base_now_ = trained(*base_now_, taken);
            }
        }
        train_counter(*provider_, taken);
        if (provider_taken_ == alternate_taken_) return;
        if (provider_taken_ == taken) {
            provider_->useful += provider_->useful < MOST_USEFUL;
        } else {
            provider_->useful -= provider_->useful > 0;
        }
    }

    static void train_counter(Entry& entry, bool taken) {
        int moved = entry.counter + (taken ? 1 : -1);
        entry.counter = static_cast<int8_t>(std::clamp<int>(moved, LEAST, MOST));
    }

    // An entry with a longer history than the provider's: of the next table, or, by chance, the one behind it, so that
    // branches that want the same entry do not go on to throw each other out.
    void allocate(bool taken) {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        random_ ^= random_ << 5;
        unsigned first = static_cast<unsigned>(provider_table_ + 1);
        if (first < tables_ - 1) first += random_ & 1;
        for (unsigned table = first; table < tables_; table++) {
            if (entry(table).useful == 0) {
                entry_tags_[numbers_[table]] = tags_[table];
                entry(table) = {static_cast<int8_t>(taken ? 0 : -1), 0};
                return;
            }
        }
        for (unsigned table = first; table < tables_; table++) entry(table).useful--;
    }

    void push(bool bit) {
        history_.push(bit);
        Lanes<TABLES> dropped;
        gather<TABLES>(dropped, history_.newest(), drop_at_, std::make_integer_sequence<unsigned, TABLES>());
        Lanes<TABLES> newest = Lanes<TABLES>{} + static_cast<uint16_t>(bit);
        index_fold_.push(newest, dropped);
        tag_fold_.push(newest, dropped);
        other_tag_fold_.push(newest, dropped);
    }

    unsigned tables_;
    unsigned index_bits_;
    Lanes<TABLES> tag_mask_{};
    int64_t useful_period_;
    int64_t until_aging_;  // conditional branches
    std::vector<uint8_t> base_;
    std::vector<uint16_t> entry_tags_;  // one entry of each table, then the next of each
    std::vector<Entry> entries_;        // likewise
    LoopPredictor loops_;
    int trust_alternate_ = 0;  // from 0 up, a new entry is not believed
    uint32_t random_ = 1;

    std::vector<unsigned> lengths_;  // of each table's history
    History history_{1};
    Folded<TABLES> index_fold_, tag_fold_, other_tag_fold_;

    // Of each table: where its bits drop out of the history, its bit in a mask, the number of its first entry, and how
    // far apart its entries are. Those that are not there share one entry, which is never looked at.
    Lanes<TABLES> drop_at_{}, table_bits_{}, first_{}, spacing_{};

    // Of the branch at hand: the number and tag of each table's entry; who predicts, and what.
    Lanes<TABLES> numbers_{}, tags_{};
    uint8_t* base_now_ = nullptr;
    Entry* provider_ = nullptr;   // null: the base table
    Entry* alternate_ = nullptr;  // likewise
    int provider_table_ = -1;
    bool provider_taken_ = false, alternate_taken_ = false, predicted_ = false;
};

DirectionPredictor::Row registered("tage", [](const Config& parameters) {
    if (parameters.integer("tables", DEFAULT_TABLES) <= MOST_TABLES / 2)
        return std::unique_ptr<DirectionPredictor>(new Tage<MOST_TABLES / 2>(parameters));
    return std::unique_ptr<DirectionPredictor>(new Tage<MOST_TABLES>(parameters));
});

}  // namespace

}  // namespace perfemu
