#include "core/ledger.hpp"

#include <algorithm>
#include <utility>

namespace perfemu {

static constexpr ProbeMask TAKEN = mask(Probe::BR_COND_TAKEN, Probe::BR_TAKEN);

Ledger::Ledger(std::vector<Column> columns, ProbeMask modelled) : columns_(std::move(columns)) {
    for (size_t number = 0; number < columns_.size(); number++) {
        Column& column = columns_[number];
        if ((column.probes | column.less) & modelled)
            modelled_columns_.push_back({number, column.probes & modelled, column.less & modelled});
        column = {column.probes & ~modelled, column.less & ~modelled};
    }
}

void Ledger::use(Account account) {
    account_ = account;
    counts_ = account == NOBODY ? nullptr : &accounts_[account];
}

void Ledger::book_block(const Block& block, int64_t runs, uint64_t departures) {
    if (!counts_) return;
    BlockRuns& booked = counts_->blocks[&block];
    booked.runs += runs;
    booked.departures += departures;
}

void Ledger::book(uint64_t address, ProbeMask probes, int64_t times) {
    if (counts_) add(*counts_, address, probes, static_cast<uint64_t>(times));
}

void Ledger::book_total(ModelledColumn& column, uint64_t address, uint64_t total) {
    const uint64_t events = total - std::exchange(column.seen, total);
    if (counts_ && events) row(*counts_, address)[column.number] += events;
    last_address_ = address;
}

void Ledger::settle(const Block& block) {
    for (auto& [account, counts] : accounts_)
        if (auto booked = counts.blocks.extract(&block)) multiply_out(counts, block, booked.mapped());
}

void Ledger::settle() {
    for (auto& [account, counts] : accounts_)
        for (auto& [block, runs] : std::exchange(counts.blocks, {})) multiply_out(counts, *block, runs);
}

std::vector<uint64_t> Ledger::take(Account account) {
    auto taken = accounts_.extract(account);
    if (!taken) return {};
    Counts& counts = taken.mapped();
    for (auto& [block, runs] : std::exchange(counts.blocks, {})) multiply_out(counts, *block, runs);
    if (account == account_) use(account);
    std::vector<std::pair<uint64_t, size_t>> rows(counts.rows.begin(), counts.rows.end());
    std::ranges::sort(rows);
    std::vector<uint64_t> table;
    table.reserve(rows.size() * (columns_.size() + 1));
    for (const auto& [address, begin] : rows) {
        table.push_back(address);
        table.insert(table.end(), &counts.values[begin], &counts.values[begin] + columns_.size());
    }
    return table;
}

uint64_t* Ledger::row(Counts& counts, uint64_t address) {
    auto [place, is_new] = counts.rows.try_emplace(address, counts.values.size());
    if (is_new) counts.values.resize(counts.values.size() + columns_.size());
    return &counts.values[place->second];
}

void Ledger::add(Counts& counts, uint64_t address, ProbeMask probes, uint64_t times) {
    uint64_t* values = row(counts, address);
    for (size_t number = 0; number < columns_.size(); number++) {
        const Column& column = columns_[number];
        values[number] += times * (uint64_t{size(probes & column.probes)} - size(probes & column.less));
    }
}

void Ledger::multiply_out(Counts& counts, const Block& block, BlockRuns runs) {
    for (const Op& op : block.ops)
        if (runs.runs) add(counts, block.address + op.offset, op.probes, static_cast<uint64_t>(runs.runs));
    if (block.ends_conditional && runs.departures)
        add(counts, block.address + block.ops.back().offset, TAKEN, runs.departures);
}

}  // namespace perfemu
