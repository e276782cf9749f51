// How recalling pipelines hear of many blocks at once. Of a block that only touches memory, all that has to be found is
// the step that it takes; where one does more, the others before it are recalled first, since it is asked when.
#include <algorithm>

#include "timing/recalled_columns.hpp"
#include "timing/recalling.hpp"

namespace perfemu {

static const RecalledBlock& recalled(const RunBlock& run) { return static_cast<const RecalledBlock&>(*run.block); }

void RecallingPipeline::retire_all(std::span<const RunBlock> blocks, const uint64_t* addresses) {
    const RunBlock *run = blocks.data(), *const behind = run + blocks.size() - 1;
    if (batches_to_rest_ > 0) {
        --batches_to_rest_;
        Pipeline::retire_all(blocks, addresses);
        return;
    }
    while (run != behind) {
        if (columns_ && (state_ != BlockMemo::NO_STATE || recognize())) {
            const RunBlock* const last = columns_->gather(run, behind, moment_.line);
            if (last != run) {
                Batch batch{run, addresses, moment_.line};
                hear_columns(batch);
                if (batch.heard * FEW_TOUCHING > columns_->blocks) batches_to_rest_ = REST_BATCHES;
                addresses += columns_->sites;
                run = last;
                continue;
            }
        }
        retire_whole(*run->block, addresses, run[1].address);
        addresses += run->block->sites;
        ++run;
    }
}

void RecallingPipeline::hear_columns(Batch& batch) {
    const RecalledColumns& columns = *columns_;
    resolve_branches(batch);
    size_t site = 0;
    while (batch.block != columns.blocks) {
        if (batch.touched_lines != columns.lines && all_there(moment_.now - front_.ahead))
            batch.touched_lines =
                memory_.touch_all_lines(columns.line_addresses.data(), batch.touched_lines, columns.lines);
        size_t stop = batch.block;
        Place place;
        if (all_there(moment_.now)) {
            // Up to the next line that is more than touched.
            size_t sites = columns.sites;
            const bool fetches = batch.touched_lines != columns.lines;
            if (fetches) {
                while (columns.rows[stop].lines <= batch.touched_lines) ++stop;
                place = place_of_line(batch, stop);
                sites = columns.sites_before(stop) + place.site;
            }
            site = memory_.touch_all(batch.addresses, columns.shapes.data(), site, sites);
            if (site != sites) {
                for (stop = batch.block; columns.rows[stop].sites <= site;) ++stop;
                place = place_of_site(batch, stop, site);
            } else if (!fetches) {
                recall(batch, columns.blocks);
                return;
            }
        }
        recall(batch, stop);
        hear_further(batch, place);
        site = columns.sites_before(batch.block);
    }
}

uint64_t RecallingPipeline::line_before(const Batch& batch, size_t block) const {
    if (block == 0) return batch.last_line;
    return recalled(batch.run[block - 1]).events.last_byte() & front_.line_mask;
}

// Of the first line that has not been touched, which is the block's.
RecallingPipeline::Place RecallingPipeline::place_of_line(const Batch& batch, size_t block) const {
    const BlockEvents& events = recalled(batch.run[block]).events;
    const size_t fetch = events.fetches - (columns_->rows[block].lines - batch.touched_lines);
    return {fetch, fetch ? events.parts.data()[fetch - 1].fetch.behind : size_t{0}};
}

RecallingPipeline::Place RecallingPipeline::place_of_site(const Batch& batch, size_t block, size_t site) const {
    const BlockEvents& events = recalled(batch.run[block]).events;
    Place place{0, site - columns_->sites_before(block)};
    while (events.parts.data()[place.fetch].fetch.behind <= place.site) ++place.fetch;
    return place;
}

RecallingPipeline::Walk RecallingPipeline::walk_of(const Batch& batch, size_t block) const {
    const RecalledBlock& its = recalled(batch.run[block]);
    const size_t untouched = std::max(size_t{columns_->rows[block].lines}, batch.touched_lines) - batch.touched_lines;
    return {.block = its,
            .addresses = batch.addresses + columns_->sites_before(block),
            .next = batch.run[block + 1].address,
            .told_lines = static_cast<unsigned>(its.events.fetches - untouched),
            .prediction = static_cast<Prediction>((columns_->rows[block].what - its.first_case) % OUTCOMES / 2)};
}

void RecallingPipeline::resolve_branches(const Batch& batch) {
    BranchUnit& branches = surroundings_.branches;
    RecalledColumns::Row* row = columns_->rows.data();
    const RunBlock *run = batch.run, *const behind = run + columns_->blocks;
    for (; run != behind; ++run, ++row) {
        const RecalledBlock& block = recalled(*run);
        const uint64_t end = run->address + block.end_offset, next = run[1].address;
        Prediction prediction = Prediction::RIGHT;
        if (block.branch != BranchKind::NONE)
            prediction = branches.learn(run->address + block.branch_offset, block.branch, next, end);
        row->what += outcome(prediction, next != end);
    }
}

// The blocks up to there, which have only touched memory.
void RecallingPipeline::recall(Batch& batch, size_t behind) {
    const RecalledColumns::Row* const rows = columns_->rows.data();
    size_t block = batch.block;
    if (block == behind) return;
    const bool checks = mode_ == RecallMode::CHECK;
    BlockMemo::State state = state_;
    BlockMemo::Transition* last = &memo_[last_];
    uint64_t now = moment_.now;
    for (; block != behind; ++block) {
        const uint32_t what = rows[block].what;
        BlockMemo::Transition* const step = memo_.find(*last, way(what), state, what);
        if (!step || checks) [[unlikely]] {
            if (block != batch.block) leave(*last, {now, line_before(batch, block)});
            batch.block = block + 1;
            recall_slowly(walk_of(batch, block), what);
            state = state_;
            last = &memo_[last_];
            now = moment_.now;
            continue;
        }
        memo_.take(*step);
        now += step->cycles;
        state = step->to;
        last = step;
    }
    if (block != batch.block) leave(*last, {now, line_before(batch, behind)});
    batch.block = behind;
}

// One more, if it may not be known.
void RecallingPipeline::recall_slowly(const Walk& walk, uint32_t what) {
    BlockMemo::Transition* const step =
        state_ != BlockMemo::NO_STATE || recognize() ? memo_.find(state_, what) : nullptr;
    surroundings_.story.begin();
    if (!step) {
        learn(walk, walk.block.events.count());
        return;
    }
    if (mode_ == RecallMode::CHECK) check(walk, *step);
    memo_.take(*step);
    leave(*step, {moment_.now + step->cycles, walk.block.events.last_byte() & front_.line_mask});
}

// The next block, of which what came before this place has been touched.
void RecallingPipeline::hear_further(Batch& batch, Place place) {
    const Walk walk = walk_of(batch, batch.block);
    if (state_ != BlockMemo::NO_STATE || recognize()) {
        hear_rest(walk, place);
    } else {
        surroundings_.story.begin();
        learn(walk, place.fetch < walk.told_lines ? BlockEvents::event_of_access(place.fetch, place.site)
                                                  : BlockEvents::event_of_fetch(place.fetch, place.site));
    }
    batch.touched_lines = std::max(batch.touched_lines, size_t{columns_->rows[batch.block].lines});
    ++batch.block;
    ++batch.heard;
}

}  // namespace perfemu
