// Packets, and when each is due.
#include "units/pt_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perfemu {

namespace {

enum Header : uint8_t { TIP = 0x0d, TIP_PGE = 0x11, TIP_PGD = 0x01, FUP = 0x1d };
constexpr uint8_t EXTENDED = 0x02;  // the second byte says which packet
constexpr uint8_t PSB = 0x82, PSBEND = 0x23, CBR = 0x03, TMA = 0x73, LONG_TNT = 0xa3, TRACE_STOP = 0x83;
constexpr uint8_t PTW = 0x12, PTW_8_BYTES = 1 << 5, PTW_ADDRESS = 1 << 7;
constexpr uint8_t PWRE = 0x22, EXSTOP = 0x62, EXSTOP_ADDRESS = 0x80, PWRX = 0xa2;
constexpr uint8_t PIP = 0x43, MODE = 0x99, MODE_EXEC_64 = 0x01, MODE_EXEC_32 = 0x02, MODE_EXEC_16 = 0x00;
constexpr uint8_t TSC = 0x19, MTC = 0x59, CYC = 0x03;
constexpr unsigned SHORT_TNT_BITS = 6, LONG_TNT_BITS = 47;
constexpr unsigned ADDRESS_BITS = 48;
constexpr uint64_t MTC_VALUES = 256;
// Where a direct jump goes is what the code says.
constexpr BranchKinds ALL_BUT_DIRECT = WantedBranches::EVERY_KIND & ~(1u << static_cast<unsigned>(BranchKind::DIRECT));

constexpr uint64_t sign_extended(uint64_t address) {
    return static_cast<uint64_t>(static_cast<int64_t>(address << (64 - ADDRESS_BITS)) >> (64 - ADDRESS_BITS));
}

// A packet under way.
struct Packet {
    std::array<uint8_t, 16> bytes;
    size_t size = 0;

    void byte(uint8_t value) { bytes[size++] = value; }
    void little_endian(uint64_t value, unsigned count) {
        for (unsigned i = 0; i < count; i++) byte(static_cast<uint8_t>(value >> 8 * i));
    }
};

}  // namespace

void PtEncoder::write(const uint8_t* bytes, size_t size) {
    output.write(bytes, size);
    since_psb_ += size;
    if (output.interrupts()) [[unlikely]] {
        output.clear_interrupt();
        set_interrupt(true);
        request_interrupt_();
    }
}

// ---- a trace

void PtEncoder::begin(PtSettings settings, uint64_t bytes_since_psb, uint64_t cycle,
                      const std::optional<ExecutionPlace>& place) {
    set(std::move(settings));
    active_ = true;
    in_context_ = met_stop_ = mode_told_ = address_told_ = asleep_ = false;
    in_range_ = !filters();
    kernel_executes_ = place.has_value();
    if (place) {
        level_ = place->level;
        code_bits_ = place->code_bits;
        cr3_ = place->tables;
        in_context_ = is_traced(level_);
    }
    tnt_ = tnt_bits_ = kept_calls_ = 0;
    told_cycle_ = cycle;
    since_psb_ = bytes_since_psb;
    if (!since_psb_)
        synchronise(cycle, nullptr);
    else if (settings_.tsc)
        write_tsc(cycle);
    if (!settings_.tsc) expect_mtc(cycle);
    if (place) arrive(place->at, cycle, false);
}

void PtEncoder::set(PtSettings settings) {
    settings_ = std::move(settings);
    const bool any_may_leave = !settings_.ranges.empty();
    wanted.kinds = any_may_leave ? WantedBranches::EVERY_KIND : ALL_BUT_DIRECT;
    wanted.levels = settings_.levels;
    most_tnt_bits_ = settings_.cyc ? SHORT_TNT_BITS : LONG_TNT_BITS;
}

void PtEncoder::end(uint64_t cycle, const std::optional<ExecutionPlace>& place) {
    if (place && traces()) {  // by the instruction behind which it is
        flush_tnt();
        target(FUP, place->behind, cycle);
        write_disabled(cycle);
    }
    active_ = in_context_ = false;
}

void PtEncoder::archive(Archive& state) {
    state(active_, in_context_, in_range_, met_stop_, interrupt_, asserted_, kernel_executes_);
    state.up_to(level_, Level::KERNEL);
    state(code_bits_, cr3_, mode_told_, address_told_, since_psb_, last_ip_, tnt_);
    state.up_to(tnt_bits_, LONG_TNT_BITS);
    state(tnt_cycle_, told_cycle_, asleep_, asleep_from_, told_ratio_, told_mtc_, mtc_due_cycle_, calls_);
    state.up_to(newest_call_, CALLS - 1);
    state.up_to(kept_calls_, CALLS);
}

void PtEncoder::synchronise(uint64_t cycle, const uint64_t* address) {
    Packet psb;
    for (int i = 0; i < 8; i++) {
        psb.byte(EXTENDED);
        psb.byte(PSB);
    }
    since_psb_ = 0;
    write(psb.bytes.data(), psb.size);
    address_told_ = false;  // it may be compressed against zero, of which perf thinks only once it is through the PSB+
    kept_calls_ = 0;
    if (settings_.tsc) write_tsc(cycle);
    write_ratio(cycle);
    mode_told_ = false;
    if (address) tell_mode();
    if (address) write_address(FUP, *address);
    if (in_context_) tell_tables(cycle);
    const uint8_t end[] = {EXTENDED, PSBEND};
    write(end, sizeof end);
}

// Where the trace has become long enough: execution goes on at `address`.
void PtEncoder::synchronise_if_due(uint64_t address, uint64_t cycle) {
    if (since_psb_ < settings_.bytes_between_psbs) return;
    flush_tnt();
    synchronise(cycle, &address);
}

// ---- the path

void PtEncoder::branch(const RetiredBranch& branch) {
    if (!in_context_ || met_stop_ || !settings_.branches) return;
    if (branch.to != sign_extended(branch.to)) return;  // it has faulted instead
    if (!settings_.ranges.empty() && follows_filters(branch)) return;
    if (branch.cycle >= mtc_due_cycle_) [[unlikely]]
        tell_mtc(branch.cycle);
    switch (branch.kind) {
        case BranchKind::CONDITIONAL: take(branch.taken, branch.cycle); break;
        case BranchKind::CALL:
            if (branch.to != branch.from + branch.length) push(branch.from + branch.length);
            return;
        case BranchKind::INDIRECT_CALL:
            push(branch.from + branch.length);
            target(TIP, branch.to, branch.cycle);
            break;
        case BranchKind::INDIRECT: target(TIP, branch.to, branch.cycle); break;
        case BranchKind::RETURN:
            if (pops(branch.to) && settings_.compresses_returns)
                take(true, branch.cycle);
            else
                target(TIP, branch.to, branch.cycle);
            break;
        default: return;
    }
    synchronise_if_due(branch.to, branch.cycle);
}

void PtEncoder::trace_written(const TraceWrite& written) {
    if (!settings_.ptwrite || !in_context_ || !in_range_ || met_stop_) return;
    if (written.cycle >= mtc_due_cycle_) tell_mtc(written.cycle);
    flush_tnt();
    stamp(written.cycle);
    const bool wide = written.bytes == 8;
    Packet packet;
    packet.byte(EXTENDED);
    packet.byte(PTW | (wide ? PTW_8_BYTES : 0) | (settings_.ptwrite_addresses ? PTW_ADDRESS : 0));
    packet.little_endian(written.value, written.bytes);
    write(packet.bytes.data(), packet.size);
    if (settings_.ptwrite_addresses) write_address(FUP, written.pc);
}

// Of the levels and the address space that are traced: ContextEn.
bool PtEncoder::is_traced(Level level) const {
    constexpr unsigned IGNORED_BITS = 5;  // IA32_RTIT_CR3_MATCH
    const bool other_space = settings_.only_cr3 && (*settings_.only_cr3 ^ cr3_) >> IGNORED_BITS;
    return contains(settings_.levels, level) && !other_space;
}

// SDM, "Packet Generation Scenarios": interrupts, exceptions, far branches.
void PtEncoder::far(const FarTransfer& transfer) {
    if (!active_) return;
    const bool from_trace = traces();
    if (from_trace) {
        if (transfer.cycle >= mtc_due_cycle_) tell_mtc(transfer.cycle);
        flush_tnt();
        if (transfer.by_gate) target(FUP, transfer.from, transfer.cycle);
    }
    level_ = transfer.to_level;
    if (transfer.code_bits != code_bits_) mode_told_ = false;
    code_bits_ = transfer.code_bits;
    in_context_ = is_traced(level_);
    arrive(transfer.to, transfer.cycle, from_trace);
}

void PtEncoder::changed_tables(uint64_t cr3, uint64_t next, uint64_t cycle) {
    if (!active_) return;
    const bool from_trace = traces(), from_context = in_context_;
    cr3_ = cr3;
    in_context_ = is_traced(level_);
    if (from_trace) flush_tnt();
    if (in_context_) tell_tables(cycle);
    if (from_trace && !in_context_) write_disabled(cycle);
    if (!from_context) arrive(next, cycle, false);  // else no branch has led there
}

// By a far transfer, or as the trace begins: `from_trace` says whether what was before is traced.
void PtEncoder::arrive(uint64_t at, uint64_t cycle, bool from_trace) {
    const bool stops = in_context_ && covers(at, true);
    if (in_context_) in_range_ = !stops && (!filters() || covers(at, false));
    if (from_trace && traces()) {
        if (!mode_told_) {
            stamp(cycle);
            tell_mode();
        }
        target(TIP, at, cycle);
    } else if (from_trace && in_context_) {
        target(TIP_PGD, at, cycle);
    } else if (from_trace) {
        write_disabled(cycle);
    } else if (traces()) {
        enable(at, cycle);
    }
    if (stops && !met_stop_) stop();
    if (traces()) synchronise_if_due(at, cycle);
}

void PtEncoder::left(const PathEnd& end) {
    if (kernel_executes_) return;
    if (traces()) {
        if (end.cycle >= mtc_due_cycle_) tell_mtc(end.cycle);
        flush_tnt();
        if (end.why != Leaving::SYSTEM_CALL) target(FUP, end.at, end.cycle);
        write_disabled(end.cycle);
    }
    in_context_ = false;
}

void PtEncoder::entered(uint64_t at, uint64_t cycle) {
    if (!active_ || kernel_executes_) return;
    in_context_ = is_traced(level_);
    if (filters()) in_range_ = covers(at, false);
    if (covers(at, true)) stop();
    if (!traces()) return;
    if (since_psb_ >= settings_.bytes_between_psbs) synchronise(cycle, nullptr);
    enable(at, cycle);
}

void PtEncoder::enable(uint64_t at, uint64_t cycle) {
    if (cycle >= mtc_due_cycle_) tell_mtc(cycle);
    if (!mode_told_) {
        stamp(cycle);
        tell_mode();
    }
    target(TIP_PGE, at, cycle);
}

// Without an address.
void PtEncoder::write_disabled(uint64_t cycle) {
    stamp(cycle);
    const uint8_t disabled = TIP_PGD;
    write(&disabled, 1);
}

void PtEncoder::tell_mode() {
    const uint8_t mode[] = {MODE, code_bits_ == 64 ? MODE_EXEC_64 : code_bits_ == 32 ? MODE_EXEC_32 : MODE_EXEC_16};
    write(mode, sizeof mode);
    mode_told_ = true;
}

// Where the kernel is traced: a user's trace does not show addresses that are the kernel's.
void PtEncoder::tell_tables(uint64_t cycle) {
    if (!contains(settings_.levels, Level::KERNEL)) return;
    stamp(cycle);
    Packet packet;
    packet.byte(EXTENDED);
    packet.byte(PIP);
    packet.little_endian(cr3_ >> 5 << 1, 6);
    write(packet.bytes.data(), packet.size);
}

// A conditional branch, or a return to where its call came from.
void PtEncoder::take(bool taken, uint64_t cycle) {
    if (!tnt_bits_) tnt_cycle_ = cycle;
    tnt_ = tnt_ << 1 | taken;
    if (++tnt_bits_ == most_tnt_bits_) flush_tnt();
}

// The time that it has is its first branch's ("Cycle Packet Semantics").
void PtEncoder::flush_tnt() {
    if (!tnt_bits_) return;
    stamp(tnt_cycle_);
    Packet packet;
    const uint64_t bits = tnt_ | uint64_t{1} << tnt_bits_;
    if (tnt_bits_ <= SHORT_TNT_BITS) {
        packet.byte(static_cast<uint8_t>(bits << 1));
    } else {
        packet.byte(EXTENDED);
        packet.byte(LONG_TNT);
        packet.little_endian(bits, 6);
    }
    tnt_ = tnt_bits_ = 0;
    write(packet.bytes.data(), packet.size);
}

void PtEncoder::target(uint8_t header, uint64_t address, uint64_t cycle) {
    flush_tnt();
    stamp(cycle);
    write_address(header, address);
}

// As short as the last address allows.
void PtEncoder::write_address(uint8_t header, uint64_t address) {
    constexpr uint8_t UPDATE_16 = 1, UPDATE_32 = 2, SIGN_EXTENDED_48 = 3, UPDATE_48 = 4;
    const uint64_t differs = address ^ last_ip_;
    uint8_t form = SIGN_EXTENDED_48;
    unsigned bytes = 6;
    if (address_told_ && !(differs >> 16)) {
        form = UPDATE_16;
        bytes = 2;
    } else if (address_told_ && !(differs >> 32)) {
        form = UPDATE_32;
        bytes = 4;
    } else if (address_told_ && !(differs >> 48)) {
        form = UPDATE_48;
    }
    Packet packet;
    packet.byte(static_cast<uint8_t>(header | form << 5));
    packet.little_endian(address, bytes);
    last_ip_ = address;
    address_told_ = true;
    write(packet.bytes.data(), packet.size);
}

// ---- calls: what a decoder knows of them, too

void PtEncoder::push(uint64_t return_address) {
    newest_call_ = (newest_call_ + 1) % CALLS;
    calls_[newest_call_] = return_address;
    kept_calls_ = std::min(kept_calls_ + 1, CALLS);
}

// Decoders do not agree on what a return does to their stack that did not lead back to its call: none is compressed
// behind one before there are new calls.
bool PtEncoder::pops(uint64_t target) {
    if (!kept_calls_ || calls_[newest_call_] != target) {
        kept_calls_ = 0;
        return false;
    }
    newest_call_ = (newest_call_ + CALLS - 1) % CALLS;
    kept_calls_--;
    return true;
}

// ---- filters

bool PtEncoder::filters() const {
    return std::ranges::any_of(settings_.ranges, [](const PtSettings::Range& range) { return !range.stops; });
}

bool PtEncoder::covers(uint64_t address, bool stops) const {
    return std::ranges::any_of(settings_.ranges, [&](const PtSettings::Range& range) {
        return range.stops == stops && address >= range.first && address <= range.last;
    });
}

// What ranges make of a branch. True: all has been told of it. Only where one leads matters, not where code is reached
// without ("Filter Enable (FilterEn)", "TraceStop").
bool PtEncoder::follows_filters(const RetiredBranch& branch) {
    if (!branch.taken) return !in_range_;
    const bool stops = covers(branch.to, true), traces = !stops && (!filters() || covers(branch.to, false));
    if (in_range_ && traces) return false;
    if (in_range_ && branch.kind == BranchKind::CONDITIONAL) {  // whose target the code says
        flush_tnt();
        write_disabled(branch.cycle);
    } else if (in_range_) {
        target(TIP_PGD, branch.to, branch.cycle);
    } else if (traces) {
        kept_calls_ = 0;
        enable(branch.to, branch.cycle);
    }
    in_range_ = traces;
    if (stops) stop();
    return true;
}

void PtEncoder::stop() {
    met_stop_ = true;
    const uint8_t packet[] = {EXTENDED, TRACE_STOP};
    write(packet, sizeof packet);
}

// ---- time

// Before a packet that has a time.
void PtEncoder::stamp(uint64_t cycle) {
    if (settings_.cyc) tell_cycles(cycle);
}

void PtEncoder::tell_cycles(uint64_t cycle) {
    uint64_t passed = cycle - told_cycle_;
    if (passed < settings_.cyc_threshold) return;
    told_cycle_ = cycle;
    Packet packet;
    const bool more = passed >> 5;
    packet.byte(static_cast<uint8_t>((passed & 0x1f) << 3 | more << 2 | CYC));
    for (passed >>= 5; passed; passed >>= 7)
        packet.byte(static_cast<uint8_t>((passed & 0x7f) << 1 | (passed >> 7 != 0)));
    write(packet.bytes.data(), packet.size);
}

uint64_t PtEncoder::ctc_of(uint64_t tsc) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(tsc) * settings_.ctc_ticks / settings_.tsc_ticks);
}

uint64_t PtEncoder::tsc_of(uint64_t ctc) const {
    const auto ticks = static_cast<unsigned __int128>(ctc) * settings_.tsc_ticks + settings_.ctc_ticks - 1;
    return static_cast<uint64_t>(ticks / settings_.ctc_ticks);
}

// With MTCs, also where the crystal clock was then.
void PtEncoder::write_tsc(uint64_t cycle) {
    const uint64_t tsc = tsc_at(cycle);
    Packet packet;
    packet.byte(TSC);
    packet.little_endian(tsc, 7);
    if (settings_.mtc) {
        const uint64_t ctc = ctc_of(tsc);
        packet.byte(EXTENDED);
        packet.byte(TMA);
        packet.little_endian(ctc, 2);
        packet.byte(0);
        packet.little_endian(tsc - tsc_of(ctc), 2);
    }
    write(packet.bytes.data(), packet.size);
    expect_mtc(cycle);
}

uint8_t PtEncoder::ratio_at(uint64_t cycle) const {
    const uint64_t ratio = clock_->hz(cycle, settings_.core_hz) / settings_.bus_hz;
    return static_cast<uint8_t>(std::clamp<uint64_t>(ratio, 1, 255));  // libipt wants some
}

void PtEncoder::write_ratio(uint64_t cycle) {
    told_ratio_ = ratio_at(cycle);
    const uint8_t packet[] = {EXTENDED, CBR, told_ratio_, 0};
    write(packet, sizeof packet);
}

// C1, which MWAIT's hints call 0.
void PtEncoder::sleep(uint64_t at, uint64_t cycle) {
    if (!active_ || met_stop_) return;
    flush_tnt();
    asleep_ = true;
    asleep_from_ = cycle;
    if (!settings_.power) return;
    if (cycle >= mtc_due_cycle_) tell_mtc(cycle);
    const uint8_t entry[] = {EXTENDED, PWRE, 0, 0};
    const uint8_t stop[] = {EXTENDED, static_cast<uint8_t>(EXSTOP | (in_context_ ? EXSTOP_ADDRESS : 0))};
    write(entry, sizeof entry);
    stamp(cycle);
    write(stop, sizeof stop);
    if (in_context_) write_address(FUP, at);
}

// Cycles of which the clock has stood still are none of CYC's.
void PtEncoder::wake(uint64_t cycle, uint8_t reason) {
    if (!std::exchange(asleep_, false)) return;
    told_cycle_ += cycle - asleep_from_;
    stamp(cycle);
    if (settings_.tsc)
        write_tsc(cycle);
    else
        expect_mtc(cycle);
    write_ratio(cycle);
    if (!settings_.power) return;
    const uint8_t exit[] = {EXTENDED, PWRX, 0, reason, 0, 0, 0};
    write(exit, sizeof exit);
}

// From this cycle on.
void PtEncoder::expect_mtc(uint64_t cycle) {
    mtc_due_cycle_ = clock_->is_constant() ? ~uint64_t{0} : cycle + 1;
    if (!settings_.mtc) return;
    const uint64_t tsc = tsc_at(cycle);
    told_mtc_ = ctc_of(tsc) >> settings_.mtc_shift;
    const uint64_t next = tsc_of((told_mtc_ + 1) << settings_.mtc_shift);
    mtc_due_cycle_ = clock_->is_constant() ? cycle + (next - tsc) : cycle + 1;
}

// What of time has become due.
void PtEncoder::tell_mtc(uint64_t cycle) {
    if (settings_.mtc) tell_ticks(cycle);
    if (ratio_at(cycle) == told_ratio_) return;
    flush_tnt();
    write_ratio(cycle);
}

// MTCs since the last one: the trace is only written where the path says something.
void PtEncoder::tell_ticks(uint64_t cycle) {
    if (settings_.cyc) flush_tnt();  // whose branches are from before
    const uint64_t tsc = tsc_at(cycle), mtc = ctc_of(tsc) >> settings_.mtc_shift;
    if (mtc - told_mtc_ >= MTC_VALUES && settings_.tsc) {
        stamp(cycle);
        write_tsc(cycle);
        return;
    }
    while (told_mtc_ < mtc) {
        told_mtc_++;
        const uint64_t ago = tsc - tsc_of(told_mtc_ << settings_.mtc_shift);
        if (clock_->is_constant() && cycle - ago > told_cycle_) stamp(cycle - ago);
        const uint8_t packet[] = {MTC, static_cast<uint8_t>(told_mtc_)};
        write(packet, sizeof packet);
    }
    expect_mtc(cycle);
}

}  // namespace perfemu
