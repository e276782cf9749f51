// The data addresses of a block's instructions, found from the registers with which the block is entered.
//
// Each block's slice is computed when the block is entered, from the engine's own register file. Where it has several
// segments, the engine calls before the first instruction of each further one, where the registers are known again.
#pragma once

#include <unicorn/unicorn.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "address/host_code.hpp"
#include "address/slice_code.hpp"
#include "engine/call_range.hpp"
#include "engine/register_file.hpp"
#include "isa/isa.hpp"
#include "memory/memory.hpp"
#include "ops/access.hpp"
#include "short_list.hpp"
#include "slice/compiler.hpp"

namespace perfemu {

// Instructions before which a block's last translation calls; none if first > last.
struct CalledOps {
    uint64_t first = 1, last = 0;

    bool none() const { return first > last; }
};

// How a block's addresses are computed, made once for each decoded block. What most blocks need lies in the first line.
class AddressSlice {
  public:
    std::span<const AccessSite> sites() const { return more_->sites; }

  private:
    friend class Addresses;
    using Word = uint64_t;

    // Most accesses: an entry register + displacement, for found[site]. One word.
    struct Direct {
        uint16_t site;
        uint16_t base;  // Addresses::register_at_
        int32_t displacement;
    };
    // base + displacement + ((index << left) >> right), for found[site]. Four words, which can be copied to registers.
    struct Indexed {
        const uint64_t* base;
        const uint64_t* index;
        uint64_t displacement;
        uint64_t shape;

        // `sign`: the shift to the right copies it.
        static uint64_t shape_of(size_t site, unsigned left, unsigned right, bool sign) {
            return uint64_t{site} << 32 | right << 16 | left << 8 | sign;
        }
        size_t site() const { return shape >> 32; }
        unsigned left() const { return shape >> 8 & 63; }
        unsigned right() const { return shape >> 16 & 63; }
        bool sign() const { return shape & 1; }
        uint64_t address() const {
            uint64_t high = *index << left();
            uint64_t term = sign() ? static_cast<uint64_t>(static_cast<int64_t>(high) >> right()) : high >> right();
            return *base + displacement + term;
        }
    };
    static constexpr size_t INDEXED_WORDS = sizeof(Indexed) / sizeof(Word);
    static_assert(sizeof(Direct) == sizeof(Word) && sizeof(Indexed) == INDEXED_WORDS * sizeof(Word));

    // The accesses of a segment: the direct ones, then the indexed ones.
    struct Accesses {
        ShortList<Word, 4> words;
        uint16_t direct = 0, indexed = 0;

        void assign(std::span<const Direct> directs, std::span<const Indexed> others) {
            std::vector<Word> all(directs.size() + INDEXED_WORDS * others.size());
            if (!directs.empty()) std::memcpy(all.data(), directs.data(), directs.size_bytes());
            if (!others.empty()) std::memcpy(all.data() + directs.size(), others.data(), others.size_bytes());
            words.assign(all);
            direct = static_cast<uint16_t>(directs.size());
            indexed = static_cast<uint16_t>(others.size());
        }
        void find(const uint64_t* registers, uint64_t* found) const {
            const Word *word = words.data(), *end = word + direct;
            for (; word != end; ++word) {
                Direct access = std::bit_cast<Direct>(*word);
                found[access.site] = registers[access.base] + static_cast<uint64_t>(access.displacement);
            }
            if (!indexed) return;
            for (end += INDEXED_WORDS * indexed; word != end; word += INDEXED_WORDS) {
                Indexed access;
                std::memcpy(&access, word, sizeof access);
                found[access.site()] = access.address();
            }
        }
    };
    struct Operand {
        const uint64_t* place;
        uint64_t displacement;

        uint64_t value() const { return *place + displacement; }
    };
    // A micro-operation with its operands' places in host memory.
    struct BoundMicroOp {
        slice::Operation operation;
        slice::Width width;
        uint8_t left, right, size;
        slice::Condition condition;
        uint16_t place;  // of the result; CHECK_APART: of the store
        Operand a, b, c;
    };
    // A store that a load is checked against.
    struct Store {
        Indexed where;
        uint64_t size;
    };
    struct Segment {
        uint64_t pc;  // of its first instruction
        unsigned first_op;
        std::vector<BoundMicroOp> micro_ops;
        std::vector<Store> stores;  // by BoundMicroOp::place
        Accesses accesses;
        std::vector<uint8_t> registers;  // whose copies it reads; none if they are read in place
    };
    struct More {
        std::span<const BoundMicroOp> micro_ops;  // of the first segment
        std::deque<Segment> segments;
        std::vector<AccessSite> sites;
        uint64_t address = 0;
        std::vector<uint8_t> bytes;         // what it was made from, if it may have to be made again
        const CalledOps* called = nullptr;  // of blocks at this address
    };

    [[no_unique_address]] Accesses accesses_;  // of the first segment; what follows lies in its padding
    bool plain_ = false;                       // these accesses are all that there is to do
    bool one_segment_ = false;
    std::unique_ptr<More> more_ = std::make_unique<More>();
};

class Addresses {
  public:
    // What to do without; for tests.
    struct Restrictions {
        bool no_register_file = false;  // registers are read through the engine's API
        bool no_call_range = false;     // every instruction calls, and each one's accesses are found there
    };
    // Chooses the fastest way that works in this engine. It must not have translated any block yet.
    static std::unique_ptr<Addresses> make(uc_engine* engine, const Isa& isa) {
        return std::make_unique<Addresses>(engine, isa, Restrictions{});
    }
    Addresses(uc_engine* engine, const Isa& isa, Restrictions restrictions);
    Addresses(const Addresses&) = delete;
    Addresses& operator=(const Addresses&) = delete;

    void set_address_space(const AddressTranslation& space);
    void compile(AddressSlice& slice, uint64_t address, std::span<const uint8_t> bytes);

    // The engine is about to run the block. Writes into `found` the address of each site; those that the entry's
    // registers do not tell are written while the block runs. False: the block must be translated anew first; PC has
    // been written, the engine will come again, and nothing has been executed. To be called for every block that runs,
    // also for those without sites.
    bool enter(AddressSlice& slice, uint64_t* found) {
        entered_ = &slice;
        if (!slice.plain_) [[unlikely]]
            return enter_computed(slice, found);
        slice.accesses_.find(registers_, found);
        return true;
    }
    // The same for a block whose registers at entry tell everything, as most do. Returns the end of what it has found;
    // null: `enter` has to say more.
    uint64_t* enter_at_once(const AddressSlice& slice, uint64_t* found);
    // The same for a block that need not be translated anew, but of which the engine tells while it runs.
    uint64_t* enter_in_place(const AddressSlice& slice, uint64_t* found);
    // By what `assemble` has made of the slice.
    uint64_t* enter_by(SliceCode code, uint64_t* found) { return code(registers_, found, results_.data()); }
    // Null if the host, or the slice, is not for that.
    SliceFunction assemble(const AddressSlice& slice);
    // A function that begins with `beginning`, which leaves in RSI what `found` is to slices, and goes on as a slice
    // that never fails does. Where the beginning's conditions fail, it goes on in the function whose address is at base
    // + displacement. Null: as `assemble`.
    const void* assemble_behind(HostAssembler beginning, const AddressSlice& slice, HostAssembler::Register base,
                                int32_t displacement);
    // The mappings may have changed since the last run.
    void notice_mappings() {
        if (seen_generation_ == space_->generation()) return;
        seen_generation_ = space_->generation();
        pages_.fill({});
    }
    // No slice exists any more.
    void forget_code() {
        code_.clear();
        called_.clear();
    }
    // Whether `found` is complete as soon as `enter` returns true. May become false in `enter`.
    bool known_at_entry(const AddressSlice& slice) const { return slice.one_segment_; }
    // Whether the addresses of the instructions before `last` have been found, of the block that was entered last. If
    // these have retired and it says no, addresses have been lost: an internal error.
    bool found_until(const AddressSlice& slice, unsigned last) const {
        return known_at_entry(slice) || (entered_ == &slice && last <= found_ops_);
    }
    // The same of all instructions of the block that was entered last in place.
    bool found_all() const { return found_ops_ == ALL_OPS; }
    // What has gone wrong inside, after which the engine has been stopped; empty if nothing has.
    // Where the registers are, unless they are read through the API.
    const RegisterFile* register_file() const { return file_ ? &*file_ : nullptr; }
    const std::string& failure() const { return failure_; }
    // The name of the way that is in use, for tests and benchmarks.
    const char* way() const;
    // How often blocks were translated anew, and how many slices were made again because a load met a store.
    uint64_t retranslations() const { return retranslations_; }
    uint64_t remade_slices() const { return remade_slices_; }

  private:
    using Segment = AddressSlice::Segment;
    using BoundMicroOp = AddressSlice::BoundMicroOp;
    static void on_instruction(uc_engine*, uint64_t pc, uint32_t size, void* user);
    static void on_translation(uc_engine*, uc_tb* block, uc_tb* previous, void* user);

    bool enter_computed(AddressSlice& slice, uint64_t* found);
    class Assembly;
    bool enter_segments(AddressSlice& slice, uint64_t* found);
    bool begin_segments(const AddressSlice::More& more, uint64_t* found);
    bool remake(AddressSlice& slice, uint64_t* found);
    void fill(AddressSlice& slice, slice::Caution caution);
    void find_registers();
    const uint64_t* place_of(slice::Value value) const;
    AddressSlice::Operand operand(slice::Value value) const;
    AddressSlice::Indexed indexed(const slice::Address& at, size_t site) const;
    void copy_registers(const Segment& segment);
    bool compute(const Segment& segment, uint64_t* found);
    bool run(std::span<const BoundMicroOp> micro_ops, const Segment& segment);
    uint64_t load(uint64_t address, unsigned size);
    [[gnu::noinline]] uint64_t load_slowly(uint64_t address, unsigned size);
    const uint8_t* readable(uint64_t address);
    slice::FlagBits flags() const;
    bool calls_are_in_place(const AddressSlice::More& slice) const;
    bool translated_silently(const AddressSlice::More& slice);
    void retranslate(const AddressSlice::More& slice);
    void fail(std::string what);

    uc_engine* engine_;
    uc_arch arch_;
    int pc_register_;
    std::unique_ptr<slice::SliceCompiler> compiler_;
    std::optional<RegisterFile> file_;
    HostCode code_;
    CallRange call_range_;
    bool every_instruction_calls_ = false;
    const AddressTranslation* space_ = nullptr;

    // What slices compute with.
    const uint64_t* registers_ = nullptr;                         // those of the entry, in the engine or copied
    std::array<uint16_t, slice::ENTRY_REGISTERS> register_at_{};  // by number: where behind that
    std::array<uint64_t, slice::ENTRY_REGISTERS> copies_{};       // of registers, without a register file
    std::array<int, slice::ENTRY_REGISTERS> engine_numbers_{};
    std::array<uint64_t, 1 + slice::MOST_RESULTS> results_{};  // behind a zero

    // The block that was entered last.
    const AddressSlice* entered_ = nullptr;
    uint64_t* found_ = nullptr;
    unsigned next_segment_ = 1;
    unsigned found_ops_ = 0;
    static constexpr unsigned ALL_OPS = ~0u;

    // A translation is of an address, and of the frame that this is in. One that crosses into another page is there
    // once for each frame that page has: they go by turns, and are made anew each time.
    struct TranslatedAt {
        uint64_t address;
        Frame frame;
        bool operator==(const TranslatedAt&) const = default;
    };
    struct HashOfTranslatedAt {
        size_t operator()(const TranslatedAt& at) const {
            return std::hash<uint64_t>()(at.address ^ uint64_t{at.frame} << 32);
        }
    };
    TranslatedAt translated_at(uint64_t address) const;
    std::unordered_map<TranslatedAt, CalledOps, HashOfTranslatedAt> called_;  // of blocks with several segments
    CalledOps wanted_;                                                        // to be in the next translation ...
    uint64_t retranslating_ = 0;                                              // ... of the block at this address
    unsigned futile_ = 0;                                                     // attempts at it
    bool announces_ = false;                                                  // the engine has announced a translation

    // Pages that were read last.
    static constexpr size_t CACHED_PAGES = 512;
    struct CachedPage {
        uint64_t page = ~uint64_t{0};
        const uint8_t* host = nullptr;
    };
    std::array<CachedPage, CACHED_PAGES> pages_;
    uint64_t seen_generation_ = 0;

    std::string failure_;
    uint64_t retranslations_ = 0;
    uint64_t remade_slices_ = 0;
};

}  // namespace perfemu
