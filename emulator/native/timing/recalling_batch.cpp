// How recalling pipelines replay many blocks at once. Of a block with filtered hits alone, all that has to be found is
// the transition that it takes; where one does more, the others before it are recalled first, since it is asked when.
#include <algorithm>

#include "timing/recalled_batch.hpp"
#include "timing/recalling.hpp"

namespace perfemu {

static const RecalledBlock& recalled(const RunBlock& run) { return static_cast<const RecalledBlock&>(*run.block); }

void RecallingPipeline::retire_all(std::span<const RunBlock> blocks, const uint64_t* addresses) {
    const RunBlock *run = blocks.data(), *const end = run + blocks.size() - 1;
    if (batches_to_rest_ > 0) {
        --batches_to_rest_;
        Pipeline::retire_all(blocks, addresses);
        return;
    }
    while (run != end) {
        if (batch_ && (in_memo() || enter_memo())) {
            const RunBlock* const last = batch_->gather(run, end, line_);
            if (last != run) {
                BatchProgress progress{run, addresses, line_};
                replay_batch(progress);
                if (progress.unusual * FEW_UNUSUAL > batch_->blocks) batches_to_rest_ = REST_BATCHES;
                addresses += batch_->sites;
                run = last;
                continue;
            }
        }
        retire_whole(*run->block, addresses, run[1].address);
        addresses += run->block->sites;
        ++run;
    }
}

void RecallingPipeline::replay_batch(BatchProgress& progress) {
    const RecalledBatch& batch = *batch_;
    resolve_branches(progress);
    size_t site = 0;
    while (progress.block != batch.blocks) {
        if (progress.filtered_lines != batch.lines && all_there(base_ - front_.ahead))
            progress.filtered_lines =
                memory_.filtered_fetches(batch.line_addresses.data(), progress.filtered_lines, batch.lines);
        size_t stop = progress.block;
        ResumePoint point;
        if (all_there(base_)) {
            // Up to the next line that is no filtered hit.
            size_t sites = batch.sites;
            const bool fetches = progress.filtered_lines != batch.lines;
            if (fetches) {
                while (batch.members[stop].lines <= progress.filtered_lines) ++stop;
                point = point_of_line(progress, stop);
                sites = batch.sites_before(stop) + point.site;
            }
            site = memory_.filtered_hits(progress.addresses, batch.shapes.data(), site, sites);
            if (site != sites) {
                for (stop = progress.block; batch.members[stop].sites <= site;) ++stop;
                point = point_of_site(progress, stop, site);
            } else if (!fetches) {
                recall(progress, batch.blocks);
                return;
            }
        }
        recall(progress, stop);
        replay_further(progress, point);
        site = batch.sites_before(progress.block);
    }
}

uint64_t RecallingPipeline::line_before(const BatchProgress& progress, size_t block) const {
    if (block == 0) return progress.last_line;
    return recalled(progress.run[block - 1]).requests.last_byte() & front_.line_mask;
}

// Of the first line that was no filtered hit, which is the block's.
RecallingPipeline::ResumePoint RecallingPipeline::point_of_line(const BatchProgress& progress, size_t block) const {
    const BlockRequests& requests = recalled(progress.run[block]).requests;
    const size_t fetch = requests.fetches - (batch_->members[block].lines - progress.filtered_lines);
    return {fetch, fetch ? requests.parts.data()[fetch - 1].fetch.sites_end : size_t{0}};
}

RecallingPipeline::ResumePoint RecallingPipeline::point_of_site(const BatchProgress& progress, size_t block,
                                                                size_t site) const {
    const BlockRequests& requests = recalled(progress.run[block]).requests;
    ResumePoint point{0, site - batch_->sites_before(block)};
    while (requests.parts.data()[point.fetch].fetch.sites_end <= point.site) ++point.fetch;
    return point;
}

RecallingPipeline::Walk RecallingPipeline::walk_of(const BatchProgress& progress, size_t block) const {
    const RecalledBlock& its = recalled(progress.run[block]);
    const size_t unknown =
        std::max(size_t{batch_->members[block].lines}, progress.filtered_lines) - progress.filtered_lines;
    return {.block = its,
            .addresses = progress.addresses + batch_->sites_before(block),
            .next = progress.run[block + 1].address,
            .known_lines = static_cast<unsigned>(its.requests.fetches - unknown),
            .prediction = static_cast<Prediction>((batch_->members[block].what - its.first_case) % OUTCOMES / 2)};
}

void RecallingPipeline::resolve_branches(const BatchProgress& progress) {
    BranchUnit& branches = environment_.branches;
    RecalledBatch::Member* member = batch_->members.data();
    const RunBlock *run = progress.run, *const end = run + batch_->blocks;
    for (; run != end; ++run, ++member) {
        const RecalledBlock& block = recalled(*run);
        const uint64_t fallthrough = run->address + block.end_offset, next = run[1].address;
        Prediction prediction = Prediction::RIGHT;
        if (block.branch != BranchKind::NONE)
            prediction = branches.learn(run->address + block.branch_offset, block.branch, next, fallthrough);
        member->what += outcome(prediction, next != fallthrough);
    }
}

// The blocks up to there, which have filtered hits alone.
void RecallingPipeline::recall(BatchProgress& progress, size_t end) {
    const RecalledBatch::Member* const members = batch_->members.data();
    size_t block = progress.block;
    if (block == end) return;
    const bool checks = mode_ == RecallMode::CHECK;
    BlockMemo::State state = state_;
    BlockMemo::Transition* last = &memo_[last_];
    uint64_t now = base_;
    for (; block != end; ++block) {
        const uint32_t what = members[block].what;
        BlockMemo::Transition* const transition = memo_.find(*last, way(what), state, what);
        if (!transition || checks) [[unlikely]] {
            if (block != progress.block) advance(*last, now, line_before(progress, block));
            progress.block = block + 1;
            recall_slowly(walk_of(progress, block), what);
            state = state_;
            last = &memo_[last_];
            now = base_;
            continue;
        }
        memo_.take(*transition);
        now += transition->cycles;
        state = transition->to;
        last = transition;
    }
    if (block != progress.block) advance(*last, now, line_before(progress, end));
    progress.block = end;
}

// One more, if it may not be known.
void RecallingPipeline::recall_slowly(const Walk& walk, uint32_t what) {
    BlockMemo::Transition* const transition = in_memo() || enter_memo() ? memo_.find(state_, what) : nullptr;
    environment_.log.begin();
    if (!transition) {
        record(walk, walk.block.requests.count());
        return;
    }
    if (mode_ == RecallMode::CHECK) check_walk(walk, *transition);
    memo_.take(*transition);
    advance(*transition, base_ + transition->cycles, walk.block.requests.last_byte() & front_.line_mask);
}

// The next block, of which what came before this point were filtered hits.
void RecallingPipeline::replay_further(BatchProgress& progress, ResumePoint point) {
    const Walk walk = walk_of(progress, progress.block);
    if (in_memo() || enter_memo()) {
        replay_rest(walk, point);
    } else {
        environment_.log.begin();
        record(walk, point.fetch < walk.known_lines ? BlockRequests::number_of_access(point.fetch, point.site)
                                                    : BlockRequests::number_of_fetch(point.fetch, point.site));
    }
    progress.filtered_lines = std::max(progress.filtered_lines, size_t{batch_->members[progress.block].lines});
    ++progress.block;
    ++progress.unusual;
}

}  // namespace perfemu
