// Blocks with entries of their own: what the hook does for any block, as a function for one, which its translation
// calls instead of the hook. Nobody has to find out which block it is.
#include <cstddef>
#include <utility>

#include "core/core.hpp"
#include "core/model.hpp"

namespace perfemu {

// The translation that has called the hook for this block calls the block's own one from now on.
void Core::make_known(Block& block, const void* return_address) {
    constexpr size_t MOST_TRANSLATIONS = 4;  // that are there at once, or were; others go on as before
    const uint64_t looked_at = block.end + LONGEST_INSTRUCTION - 1;
    const bool in_one_page = ((block.address ^ looked_at) & ~PAGE_MASK) == 0;  // so that a translation is of one block
    if (follows_branches_ || !in_one_page || block.callers.size() == MOST_TRANSLATIONS) return;
    if (!model_->calls->usable()) return;
    if (!block.entry) block.entry = make_entry(block);
    if (!block.entry || !model_->calls->redirect(return_address, block.entry)) return;
    block.callers.push_back(return_address);
    known_calls_++;
}

void Core::make_unknown(Block& block) {
    for (const void* return_address : block.callers) model_->calls->restore(return_address, block.entry);
    block.callers.clear();
}

// A function that does what on_block_modelled does for this block.
const void* Core::make_entry(const Block& block) {
    using Host = HostAssembler;
    constexpr Host::Register ADDRESS = Host::RSI, LOG = Host::RCX, BLOCK = Host::R8, FOUND = Host::RSI;
    const VisitLog& log = model_->log;
    auto offset = [](const auto& whole, const auto& part) {
        return static_cast<int32_t>(reinterpret_cast<const uint8_t*>(&part) - reinterpret_cast<const uint8_t*>(&whole));
    };
    const bool is_followed = block.transfer != Transfer::NONE;
    const int32_t room = offset(log, log.room), end = offset(log, log.end);
    const int32_t cost = offset(block, is_followed ? block.cost_behind_look : block.cost);
    const int32_t found_end = offset(log, log.found_end), runs = offset(block, block.runs);
    Host host;
    host.load_constant(BLOCK, reinterpret_cast<uint64_t>(&block));
    host.load(Host::RAX, LOG, room);
    host.subtract(Host::RAX, BLOCK, cost);
    host.test(Host::RAX, LOG, offset(log, log.exhausted));
    host.fail_if(Host::NOT_EQUAL);
    host.compare_with_zero(BLOCK, runs);
    host.fail_if(Host::EQUAL);
    host.increment(BLOCK, runs);
    if (is_followed) {  // as Core::hold
        host.store(LOG, offset(log, log.held), Host::RAX);
        host.load_constant(Host::RAX, 0);
    }
    host.store(LOG, room, Host::RAX);
    host.load(Host::RDX, LOG, offset(log, log.previous));
    host.store(Host::RDX, 0, BLOCK);
    host.load(Host::RAX, LOG, end);
    host.load(BLOCK, BLOCK, offset(block, block.prepared));
    host.store(Host::RAX, offsetof(RunBlock, block), BLOCK);
    host.store(Host::RAX, offsetof(RunBlock, address), ADDRESS);
    host.load_address(Host::RAX, Host::RAX, sizeof(RunBlock));
    host.store(LOG, end, Host::RAX);
    if (block.sites) {
        host.load(FOUND, LOG, found_end);
        host.load_address(Host::RAX, FOUND, static_cast<int32_t>(block.sites * sizeof(uint64_t)));
        host.store(LOG, found_end, Host::RAX);
    }
    return model_->addresses->assemble_behind(std::move(host), block.modelled->slice, LOG, offset(log, log.otherwise));
}

// A plain block with an entry of its own that does not fit, or has not run since the last fold.
void Core::on_known_block(uc_engine*, uint64_t address, uint32_t size, void* user) {
    Core& core = *static_cast<VisitLog*>(user)->core;
    core.log_otherwise(address, size, nullptr);
    core.model_->calls->check_exit();
}

}  // namespace perfemu
