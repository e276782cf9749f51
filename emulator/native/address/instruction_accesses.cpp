#include "address/instruction_accesses.hpp"

#include <array>

#include "engine/register_file.hpp"
#include "slice/evaluate.hpp"

namespace perfemu {

using slice::MicroOp;
using slice::Operation;
using slice::Value;

namespace {

// A slice's values, by their places.
class Values {
  public:
    Values(uc_engine* engine, uc_arch arch, const AddressTranslation& space)
        : engine_(engine), arch_(arch), space_(space) {
        for (const EntryRegister& each : entry_registers(arch))
            values_[each.number] = read_register(engine, each.engine_number);
    }

    uint64_t operator[](Value value) const {
        return values_[static_cast<size_t>(value.place)] + static_cast<uint64_t>(value.displacement);
    }

    void compute(const MicroOp& op) {
        if (op.operation == Operation::CHECK_APART) return;  // nothing has been stored before
        const uint64_t a = (*this)[op.a], b = (*this)[op.b];
        uint64_t result;
        switch (op.operation) {
            case Operation::LOAD:
            case Operation::LOAD_SIGNED:
                result = load(a + (b << op.left), op.size, op.operation == Operation::LOAD_SIGNED);
                break;
            case Operation::CONDITION_ENTRY: result = slice::holds(op.condition, read_flags(engine_, arch_)); break;
            default:
                result = slice::evaluate(op.operation, op.width, op.left, op.right, op.condition, a, b, (*this)[op.c]);
        }
        values_[static_cast<size_t>(op.result)] =
            op.width == slice::Width::BITS_64 ? result : static_cast<uint32_t>(result);
    }

    uint64_t address(const slice::Address& at) const {
        const unsigned above = 64 - 8u * at.extension.size_bytes;
        const uint64_t high = (*this)[at.index] << above;
        const uint64_t index =
            at.extension.sign ? static_cast<uint64_t>(static_cast<int64_t>(high) >> above) : high >> above;
        return (*this)[at.base] + (index << at.shift);
    }

  private:
    uint64_t load(uint64_t address, unsigned size, bool sign) const {
        uint64_t value = 0;
        space_.read(address, std::span(reinterpret_cast<uint8_t*>(&value), size));
        const unsigned above = 64 - 8 * size;
        return sign ? static_cast<uint64_t>(static_cast<int64_t>(value << above) >> above) : value;
    }

    uc_engine* engine_;
    uc_arch arch_;
    const AddressTranslation& space_;
    std::array<uint64_t, slice::FIRST_RESULT + slice::MOST_RESULTS> values_{};  // that of ZERO stays so
};

}  // namespace

InstructionAccesses::InstructionAccesses(uc_arch arch)
    : arch_(arch), compiler_(slice::SliceCompiler::make(arch == UC_ARCH_ARM64 ? "aarch64" : "x86_64")) {}

std::vector<DataAccess> InstructionAccesses::find(uc_engine* engine, const AddressTranslation& space, uint64_t pc,
                                                  std::span<const uint8_t> bytes) {
    const slice::Slice slice = compiler_->compile(pc, bytes, {});
    Values values(engine, arch_, space);
    std::vector<DataAccess> found;
    for (const slice::Segment& segment : slice.segments) {
        for (const MicroOp& op : segment.micro_ops) values.compute(op);
        for (const slice::Address& at : segment.addresses) {
            const AccessSite& site = slice.sites[found.size()];
            if (site.op != 0) return found;
            const auto kinds = static_cast<uint8_t>((site.load ? READ : 0) | (site.store ? WRITE : 0));
            found.push_back({values.address(at), site.size, kinds});
        }
    }
    return found;
}

}  // namespace perfemu
