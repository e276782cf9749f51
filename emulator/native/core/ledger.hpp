// Which instruction made which events: exact counts, by account and address.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/block.hpp"

namespace perfemu {

// A column counts occurrences of some probes, less those of others, as a counter of a CounterBank does. An account is
// whoever the kernel says is running; blocks' runs are booked to it as they are, and multiplied out when it is taken.
class Ledger {
  public:
    using Account = uint32_t;
    static constexpr Account NOBODY = 0;

    struct Column {
        ProbeMask probes = 0, less = 0;
    };

    // `modelled`: the probes that models fire. An instruction's bytes do not tell of them: see `book_total`.
    Ledger(std::vector<Column> columns, ProbeMask modelled);

    std::span<const Column> columns() const { return columns_; }
    // Those that models have a part in, by their numbers, with that part of them.
    struct ModelledColumn {
        size_t number;
        ProbeMask probes, less;
        uint64_t seen = 0;  // the total when it was booked last
    };
    std::span<ModelledColumn> modelled_columns() { return modelled_columns_; }

    // Whom what is booked belongs to from now on.
    void use(Account account);
    Account account() const { return account_; }

    // `departures` of its runs did not continue at its end.
    void book_block(const Block& block, int64_t runs, uint64_t departures);
    void book(uint64_t address, ProbeMask probes, int64_t times = 1);
    // A modelled column has come to `total`; the difference is this instruction's.
    void book_total(ModelledColumn& column, uint64_t address, uint64_t total);
    // The address of the instruction that `book_total` was told of last.
    uint64_t last_address() const { return last_address_; }
    // These are about to change, or to be no more.
    void settle(const Block& block);
    void settle();

    // Of each instruction, by address: that, then its counts. What is taken is forgotten.
    std::vector<uint64_t> take(Account account);

  private:
    struct BlockRuns {
        int64_t runs = 0;
        uint64_t departures = 0;
    };
    struct Counts {
        std::unordered_map<const Block*, BlockRuns> blocks;
        std::unordered_map<uint64_t, size_t> rows;  // address -> where its counts begin
        std::vector<uint64_t> values;
    };
    uint64_t* row(Counts& counts, uint64_t address);
    void add(Counts& counts, uint64_t address, ProbeMask probes, uint64_t times);
    void multiply_out(Counts& counts, const Block& block, BlockRuns runs);

    std::vector<Column> columns_;  // of what an instruction's bytes tell
    std::vector<ModelledColumn> modelled_columns_;
    std::unordered_map<Account, Counts> accounts_;
    Account account_ = NOBODY;
    Counts* counts_ = nullptr;  // the account's
    uint64_t last_address_ = 0;
};

}  // namespace perfemu
