#include "aarch64/row.hpp"

#include <array>
#include <stdexcept>

namespace perfemu::aarch64 {
namespace {

struct FeatureName {
    std::string_view name;
    Feature feature;
};
constexpr FeatureName FEATURE_NAMES[] = {
    {"atomics", Feature::ATOMICS},   {"fphp", Feature::FP16},   {"asimdhp", Feature::FP16},
    {"asimdrdm", Feature::ASIMDRDM}, {"lrcpc", Feature::LRCPC}, {"dcpop", Feature::DCPOP},
    {"asimddp", Feature::ASIMDDP},
};

// Rows by bits 28:21 of their encodings, in the table's order: the first that fits decides.
class Table {
  public:
    Table() {
        for (auto part : {general_rows, memory_rows, vector_rows})
            for (const Row& row : part()) rows_.push_back(row);
        for (const Row& row : rows_)
            for (uint32_t key = 0; key < KEYS; key++)
                if ((key << LOWEST_BIT & row.mask) == (row.value & (KEYS - 1) << LOWEST_BIT))
                    by_key_[key].push_back(row);
    }
    const Row* find(uint32_t word) const {
        for (const Row& row : by_key_[word >> LOWEST_BIT & (KEYS - 1)])
            if (row.fits(word)) return &row;
        return nullptr;
    }

  private:
    static constexpr unsigned LOWEST_BIT = 21;
    static constexpr uint32_t KEYS = 1 << 8;

    std::vector<Row> rows_;
    std::array<std::vector<Row>, KEYS> by_key_;
};

}  // namespace

const Row* row_of(uint32_t word) {
    static const Table table;
    return table.find(word);
}

Features features_of(std::span<const std::string> names) {
    Features features = bit(Feature::NONE);
    for (const std::string& name : names) {
        bool known = false;
        for (const FeatureName& each : FEATURE_NAMES) {
            if (each.name != name) continue;
            features |= bit(each.feature);
            known = true;
        }
        if (!known) throw std::invalid_argument("feature " + name + " is none that an AArch64 core may have here");
    }
    return features;
}

}  // namespace perfemu::aarch64
