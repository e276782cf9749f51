// AddressTracer: Addresses at work in an engine of its own, with nothing of the core around it. For tests.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "address/addresses.hpp"
#include "bindings/bindings.hpp"
#include "core/access_witness.hpp"
#include "instructions/guest_memory.hpp"
#include "isa/isa.hpp"
#include "memory/memory.hpp"

namespace nb = nanobind;

namespace perfemu {

namespace {

class AddressTracer {
  public:
    AddressTracer(std::string_view isa, std::shared_ptr<AddressSpace> space, bool no_register_file, bool no_call_range)
        : isa_(Isa::make(isa)), space_(std::move(space)) {
        check(uc_open(isa_->engine_arch(), isa_->engine_mode(), &engine_));
        isa_->configure(engine_);
        check(uc_ctl_tlb_mode(engine_, UC_TLB_VIRTUAL));
        check(uc_ctl_exits_enable(engine_));
        check(uc_ctl_set_exits(engine_, static_cast<uint64_t*>(nullptr), static_cast<size_t>(0)));
        PhysicalMemory& memory = space_->memory();
        check(uc_mem_map_ptr(engine_, 0, memory.size_bytes(), UC_PROT_ALL, memory.host(0)));
        hook(UC_HOOK_BLOCK, reinterpret_cast<void*>(&AddressTracer::on_block));
        hook(UC_HOOK_INTR, reinterpret_cast<void*>(&AddressTracer::on_interrupt));
        hook(UC_HOOK_TLB_FILL, reinterpret_cast<void*>(&AddressTracer::on_tlb_fill));
        if (isa_->engine_arch() == UC_ARCH_X86)
            hook(UC_HOOK_INSN, reinterpret_cast<void*>(&AddressTracer::on_syscall), UC_X86_INS_SYSCALL);
        isa_->enter_user_mode(engine_);
        addresses_ = std::make_unique<Addresses>(
            engine_, *isa_,
            Addresses::Restrictions{.no_register_file = no_register_file, .no_call_range = no_call_range});
        addresses_->set_address_space(*space_);
    }
    ~AddressTracer() { uc_close(engine_); }
    AddressTracer(const AddressTracer&) = delete;
    AddressTracer& operator=(const AddressTracer&) = delete;

    // Runs until a system call, a fault or an exception, or for so many blocks.
    std::string run(uint64_t most_blocks, bool stepping, bool recording) {
        blocks_left_ = most_blocks;
        recording_ = recording;
        stepping_ = stepping;
        stop_ = "";
        isa_->set_stepping(engine_, stepping);
        if (seen_generation_ != space_->generation()) {
            seen_generation_ = space_->generation();
            uc_ctl_flush_tlb(engine_);
        }
        addresses_->notice_mappings();
        uc_err error = uc_emu_start(engine_, pc(), 0, 0, 0);
        if (stepping_) end_stepping_through();
        if (failure_.empty()) failure_ = addresses_->failure();
        if (error != UC_ERR_OK) stop_ = faulted_ ? "fault" : "exception";
        faulted_ = false;
        if (previous_) {
            bool within = stop_ == "fault" || stop_ == "exception";
            size_t retired = within ? previous_->index_of(pc()) : previous_->ops.size();
            retire(*previous_, retired);
        }
        previous_ = nullptr;
        if (!failure_.empty()) throw std::logic_error(failure_);
        if (stop_ == "syscall") isa_->complete_syscall(engine_);
        return stop_;
    }

    uint64_t pc() const { return read_register(engine_, isa_->pc()); }
    uint64_t read(unsigned number) const { return read_register(engine_, isa_->registers()[number]); }
    void write(unsigned number, uint64_t value) { write_register(engine_, isa_->registers()[number], value); }
    void flush_translations() { uc_ctl_flush_tb(engine_); }
    void drop_slices() { blocks_.clear(); }

    nb::bytes seen() {
        nb::bytes all(reinterpret_cast<const char*>(seen_.data()), seen_.size() * sizeof(SeenAccess));
        seen_.clear();
        return all;
    }
    uint64_t accesses() const { return accesses_; }
    uint64_t checksum() const { return checksum_; }
    uint64_t blocks_by_code() const { return blocks_by_code_; }
    const Addresses& addresses() const { return *addresses_; }

  private:
    struct SeenAccess {
        uint64_t pc, address, size, store;
    };
    struct TracedBlock {
        uint64_t address;
        uint32_t size;
        std::vector<Op> ops;
        std::vector<uint8_t> bytes;
        std::unique_ptr<AddressSlice> slice;
        std::vector<uint64_t> found, found_by_code;
        SliceCode code = nullptr;

        size_t index_of(uint64_t pc) const {
            for (size_t i = 0; i < ops.size(); i++)
                if (address + ops[i].offset == pc) return i;
            return ops.size();
        }
    };

    static void check(uc_err error) {
        if (error != UC_ERR_OK) throw std::runtime_error(uc_strerror(error));
    }
    void hook(int type, void* callback, int instruction = 0) {
        uc_hook handle;
        check(uc_hook_add(engine_, &handle, type, callback, this, 1, 0, instruction));
    }
    void stop(const char* why) {
        stop_ = why;
        uc_emu_stop(engine_);
    }

    static void on_block(uc_engine*, uint64_t address, uint32_t size, void* user) {
        AddressTracer& self = *static_cast<AddressTracer*>(user);
        if (self.previous_) self.retire(*self.previous_, self.previous_->ops.size());
        self.previous_ = nullptr;
        if (self.blocks_left_-- == 0) {
            self.stop("blocks");
            return;
        }
        TracedBlock& block = self.block_at(address, size);
        if (self.stepped_through_ && block.ops[0].repeated) {
            self.end_stepping_through();
            write_register(self.engine_, self.isa_->pc(), address);
            return;
        }
        if (!self.stepping_ && repeats_inside(block)) {
            self.stepped_through_ = &block;
            self.stepping_ = true;
            self.isa_->set_stepping(self.engine_, true);
            write_register(self.engine_, self.isa_->pc(), address);
            return;
        }
        self.iterates_ = !block.ops[0].repeated || self.repeat_count(block.ops[0]) != 0;
        if (!self.addresses_->enter(*block.slice, block.found.data())) return;
        self.previous_ = &block;
        if (block.code && self.addresses_->known_at_entry(*block.slice)) self.compare_code(block);
    }

    // What the slice's code finds against what `enter` has found.
    void compare_code(TracedBlock& block) {
        block.found_by_code.resize(block.found.size());
        const uint64_t* end = addresses_->enter_by(block.code, block.found_by_code.data());
        if (!end) return;
        blocks_by_code_++;
        if (end == block.found_by_code.data() + block.found.size() && block.found_by_code == block.found) return;
        failure_ = "the code of a slice finds other addresses";
        stop("failure");
    }

    // x86: a REP runs as a block of its own for each iteration, and once more to go on. Behind other instructions it is
    // reached by stepping, because nobody knows at the block's start whether it will iterate.
    static bool repeats_inside(const TracedBlock& block) {
        for (size_t i = 1; i < block.ops.size(); i++)
            if (block.ops[i].repeated) return true;
        return false;
    }
    uint64_t repeat_count(const Op& op) const {
        uint64_t count = read_register(engine_, UC_X86_REG_RCX);
        return op.repeats(count);
    }
    void end_stepping_through() {
        stepped_through_ = nullptr;
        stepping_ = false;
        isa_->set_stepping(engine_, false);
    }

    TracedBlock& block_at(uint64_t address, uint32_t size) {
        TracedBlock& block = blocks_[address ^ uint64_t{size} << 48];
        std::vector<uint8_t>& now = scratch_;
        if (block.slice && !changeable_) return block;
        now.resize(size);
        if (space_->read(address, now) != size) throw std::logic_error("a block that is not mapped");
        if (block.slice && block.bytes == now) return block;
        block = {.address = address, .size = size, .ops = isa_->decode(address, now), .bytes = now};
        block.slice = std::make_unique<AddressSlice>();
        addresses_->compile(*block.slice, address, now);
        block.code = addresses_->assemble(*block.slice).code;
        block.found.resize(block.slice->sites().size());
        return block;
    }

    void retire(const TracedBlock& block, size_t last) {
        if (!addresses_->found_until(*block.slice, static_cast<unsigned>(last))) {
            failure_ = "addresses have been lost";
            stop("failure");
        }
        if (block.ops[0].repeated && !iterates_) return;
        std::span<const AccessSite> sites = block.slice->sites();
        for (size_t i = 0; i < sites.size() && sites[i].op < last; i++) {
            accesses_++;
            checksum_ += block.found[i];
            if (!recording_) continue;
            uint64_t size = sites[i].size / sites[i].elements;
            for (unsigned element = 0; element < sites[i].elements; element++)
                seen_.push_back({block.address + block.ops[sites[i].op].offset, block.found[i] + element * size, size,
                                 sites[i].store});
        }
    }

    static void on_interrupt(uc_engine* engine, uint32_t number, void* user) {
        AddressTracer& self = *static_cast<AddressTracer*>(user);
        bool arm = self.isa_->engine_arch() == UC_ARCH_ARM64;
        if (self.stop_ != "") return;
        if (self.stepping_ && number == Isa::STEP_INTERRUPT) {
            const TracedBlock* through = self.stepped_through_;
            uint64_t now = self.pc();
            if (through && (now <= through->address || now >= through->address + through->size)) {
                self.end_stepping_through();
            } else {
                self.isa_->rearm_stepping(engine);
            }
        } else {
            self.stop(arm && number == 2 ? "syscall" : "exception");
        }
    }
    static void on_syscall(uc_engine*, void* user) { static_cast<AddressTracer*>(user)->stop("syscall"); }

    static bool on_tlb_fill(uc_engine*, uint64_t address, uc_mem_type type, uc_tlb_entry* entry, void* user) {
        AddressTracer& self = *static_cast<AddressTracer*>(user);
        uint8_t needed = type == UC_MEM_FETCH ? EXECUTE : type == UC_MEM_WRITE ? WRITE : READ;
        const Page page = self.space_->lookup(address);
        if (!page.present || !(page.protection & needed)) {
            self.faulted_ = true;
            return false;
        }
        if (page.protection & WRITE && page.protection & EXECUTE) self.changeable_ = true;
        entry->paddr = uint64_t{page.frame} << PAGE_SHIFT;
        entry->perms = static_cast<uc_prot>(page.protection);
        return true;
    }

    std::unique_ptr<Isa> isa_;
    std::shared_ptr<AddressSpace> space_;
    uc_engine* engine_ = nullptr;
    std::unique_ptr<Addresses> addresses_;
    std::unordered_map<uint64_t, TracedBlock> blocks_;
    TracedBlock* previous_ = nullptr;
    const TracedBlock* stepped_through_ = nullptr;
    bool iterates_ = true;  // of `previous_`: not a REP that finds its count at zero
    std::vector<uint8_t> scratch_;
    std::vector<SeenAccess> seen_;
    uint64_t accesses_ = 0, checksum_ = 0, blocks_by_code_ = 0;
    uint64_t blocks_left_ = 0;
    uint64_t seen_generation_ = 0;
    bool recording_ = true, stepping_ = false, faulted_ = false, changeable_ = false;
    std::string stop_, failure_;
};

}  // namespace

void bind_address(nb::module_& module) {
    nb::class_<AddressTracer>(module, "AddressTracer")
        .def(nb::init<std::string_view, std::shared_ptr<AddressSpace>, bool, bool>(), nb::arg("isa"), nb::arg("space"),
             nb::arg("no_register_file") = false, nb::arg("no_call_range") = false)
        .def("run", &AddressTracer::run, nb::arg("most_blocks") = ~uint64_t{0}, nb::arg("stepping") = false,
             nb::arg("recording") = true)
        .def_prop_ro("pc", &AddressTracer::pc)
        .def("read_register", &AddressTracer::read, nb::arg("number"))
        .def("write_register", &AddressTracer::write, nb::arg("number"), nb::arg("value"))
        .def("flush_translations", &AddressTracer::flush_translations)
        .def("drop_slices", &AddressTracer::drop_slices)
        .def("seen", &AddressTracer::seen)
        .def_prop_ro("accesses", &AddressTracer::accesses)
        .def_prop_ro("checksum", &AddressTracer::checksum)
        .def_prop_ro("blocks_by_code", &AddressTracer::blocks_by_code)
        .def_prop_ro("way", [](const AddressTracer& tracer) { return tracer.addresses().way(); })
        .def_prop_ro("retranslations", [](const AddressTracer& tracer) { return tracer.addresses().retranslations(); })
        .def_prop_ro("remade_slices", [](const AddressTracer& tracer) { return tracer.addresses().remade_slices(); });

    nb::class_<AccessWitness>(module, "AccessWitness")
        .def(nb::init<Core&, std::shared_ptr<AddressSpace>>(), nb::arg("core"), nb::arg("space"),
             nb::keep_alive<1, 2>())
        .def("set_address_space", &AccessWitness::set_address_space, nb::arg("space"))
        .def("compare", &AccessWitness::compare);

    module.def("tell_accesses", [] { accesses_are_told = true; });
}

}  // namespace perfemu
