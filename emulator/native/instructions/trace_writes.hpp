// PTWRITE: who is told of what it writes.
#pragma once

#include <cstdint>
#include <span>

namespace perfemu {

struct ExecutedRow;

class TraceWriteListener {
  public:
    virtual ~TraceWriteListener() = default;
    // The instruction has executed, and has not retired yet. `bytes`: 4 or 8.
    virtual void trace_written(uint64_t value, unsigned bytes) = 0;
};

// While one exists, this one hears of what this thread's engine executes.
class HeardTraceWrites {
  public:
    explicit HeardTraceWrites(TraceWriteListener& listener);
    ~HeardTraceWrites();
    HeardTraceWrites(const HeardTraceWrites&) = delete;
    HeardTraceWrites& operator=(const HeardTraceWrites&) = delete;
};

std::span<const ExecutedRow> trace_write_rows();

}  // namespace perfemu
