#include "isa.hpp"

#include <stdexcept>
#include <string>

namespace perfemu {

std::unique_ptr<Isa> Isa::make(std::string_view name) {
    if (name == "aarch64") return make_aarch64();
    if (name == "x86_64") return make_x86_64();
    throw std::invalid_argument("isa " + std::string(name) + " is not one of aarch64, x86_64");
}

Disassembler::Disassembler(cs_arch arch, cs_mode mode) : arch_(arch) {
    if (cs_open(arch, mode, &handle_) != CS_ERR_OK) throw std::runtime_error("capstone does not open");
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    insn_ = cs_malloc(handle_);
}

Disassembler::~Disassembler() {
    cs_free(insn_, 1);
    cs_close(&handle_);
}

const cs_insn* Disassembler::decode(uint64_t address, std::span<const uint8_t> bytes) {
    const uint8_t* code = bytes.data();
    size_t size = bytes.size();
    if (!cs_disasm_iter(handle_, &code, &size, &address, insn_)) return nullptr;
    // Capstone names CMPPS, CMPSD ... after their predicate, and adds that to the number: CMPORDPD is CMPXCHG16B.
    if (arch_ == CS_ARCH_X86 && insn_->detail->x86.opcode[0] == 0x0f && insn_->detail->x86.opcode[1] == 0xc2)
        insn_->id = X86_INS_CMPPS;
    return insn_;
}

}  // namespace perfemu
