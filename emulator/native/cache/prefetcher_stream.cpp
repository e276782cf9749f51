// Streams: runs of misses to ascending or descending lines, whoever makes them. As in Palacharla and Kessler,
// "Evaluating Stream Buffers as a Secondary Cache Replacement", ISCA 1994, but into the cache itself.
//
// A miss, or the first use of a line that a prefetcher brought, goes to the stream in whose `window` of lines it lies.
// From the `confidence`th step in one direction on, each step brings up to `degree` lines, until the stream is
// `distance` lines ahead. Of `streams`, the one that was used longest ago makes room.
#include "cache/prefetcher.hpp"

namespace perfemu {

class Stream final : public Prefetcher {
  public:
    Stream(const Config& parameters, unsigned line_shift)
        : page_(parameters, line_shift), degree_(prefetcher_parameter(parameters, "degree", 2)),
          distance_(prefetcher_parameter(parameters, "distance", 8)),
          confidence_(prefetcher_parameter(parameters, "confidence", 2)),
          window_(prefetcher_parameter(parameters, "window", 4)),
          streams_(prefetcher_parameter(parameters, "streams", 16)) {
        check_prefetcher_keys(parameters, {"streams", "degree", "distance", "confidence", "window"});
    }

    void operate(const CacheAccess&, const CacheResult& result, std::vector<uint64_t>& lines) override {
        Run* oldest = &streams_[0];
        for (Run& run : streams_) {
            int64_t step = static_cast<int64_t>(result.line - run.line);
            if (run.used && step != 0 && step >= -window_ && step <= window_)
                return follow(run, result.line, step, lines);
            if (run.used < oldest->used) oldest = &run;
        }
        *oldest = {.line = result.line, .next = result.line, .used = ++clock_};
    }

    void archive(Archive& state) override { state(streams_, clock_); }

  private:
    struct Run {
        uint64_t line = 0;  // last line
        uint64_t next = 0;  // first not yet asked for, in the stream's direction
        uint64_t used = 0;  // 0: free
        int64_t direction = 0;
        uint32_t steps = 0;

        void archive(Archive& state) { state(line, next, used, direction, steps); }
    };

    void follow(Run& run, uint64_t line, int64_t step, std::vector<uint64_t>& lines) {
        int64_t direction = step > 0 ? 1 : -1;
        run.steps = direction == run.direction ? run.steps + (run.steps < confidence_) : 1;
        if (run.steps == 1) run.next = line;
        run.direction = direction;
        run.line = line;
        run.used = ++clock_;
        if (run.steps < confidence_) return;
        // Nothing behind the access is asked for.
        auto ahead = [&] { return static_cast<int64_t>(run.next - line) * direction; };
        if (ahead() < 1) run.next = line + static_cast<uint64_t>(direction);
        for (uint32_t brought = 0; brought < degree_ && ahead() <= distance_; ++brought) {
            if (!page_.allows(line, run.next)) return;
            lines.push_back(run.next);
            run.next += static_cast<uint64_t>(direction);
        }
    }

    PageBound page_;
    uint32_t degree_;
    int64_t distance_;
    uint32_t confidence_;
    int64_t window_;
    std::vector<Run> streams_;
    uint64_t clock_ = 0;
};

static const Prefetcher::Row row("stream", [](const Config& parameters, unsigned line_shift) {
    return std::unique_ptr<Prefetcher>(std::make_unique<Stream>(parameters, line_shift));
});

}  // namespace perfemu
