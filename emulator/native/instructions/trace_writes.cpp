#include "instructions/trace_writes.hpp"

#include "instructions/executed.hpp"

namespace perfemu {
namespace {

thread_local TraceWriteListener* listener = nullptr;

// It may fault as a load does.
void write_trace(const Operands& operands) {
    const uint64_t value = operands.read_source();
    if (listener) listener->trace_written(value, operands.bytes());
}

constexpr ExecutedRow ROWS[] = {
    {.map = Encoding::MAP_0F,
     .opcode = 0xae,
     .prefixes = Encoding::F3,
     .group = 4,
     .widths = ExecutedRow::BITS_32 | ExecutedRow::BITS_64,
     .execute = write_trace},
};

}  // namespace

HeardTraceWrites::HeardTraceWrites(TraceWriteListener& heard) { listener = &heard; }
HeardTraceWrites::~HeardTraceWrites() { listener = nullptr; }

std::span<const ExecutedRow> trace_write_rows() { return ROWS; }

}  // namespace perfemu
