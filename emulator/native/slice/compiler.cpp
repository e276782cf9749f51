#include "slice/compiler.hpp"

#include <map>
#include <stdexcept>
#include <string>

namespace perfemu::slice {

namespace {

std::map<std::string, SliceCompilerRow::Make, std::less<>>& rows() {
    static std::map<std::string, SliceCompilerRow::Make, std::less<>> all;
    return all;
}

}  // namespace

SliceCompilerRow::SliceCompilerRow(std::string_view isa, Make make) { rows()[std::string(isa)] = make; }

std::unique_ptr<SliceCompiler> SliceCompiler::make(std::string_view isa) {
    auto row = rows().find(isa);
    if (row == rows().end()) throw std::invalid_argument("no address slices for instruction set " + std::string(isa));
    return row->second();
}

Slice SliceCompiler::compile(uint64_t address, std::span<const uint8_t> bytes, Caution caution) {
    SliceBuilder builder;
    builder.start(caution);
    size_t offset = 0;
    for (unsigned op = 0; offset < bytes.size(); op++) {
        builder.begin_op(op, static_cast<unsigned>(offset));
        unsigned length = 0;
        do {
            length = compile_op(builder, address + offset, bytes.subspan(offset));
        } while (builder.retry());
        if (length == 0) break;
        offset += length;
    }
    return builder.finish();
}

}  // namespace perfemu::slice
