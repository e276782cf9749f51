// The next `degree` lines, on a miss and on the first use of a line that came so (tagged prefetch).
#include "cache/prefetcher.hpp"

namespace perfemu {

class NextLine final : public Prefetcher {
  public:
    NextLine(const Config& parameters, unsigned line_shift)
        : page_(parameters, line_shift), degree_(prefetcher_parameter(parameters, "degree", 1)) {
        check_prefetcher_keys(parameters, {"degree"});
    }

    void operate(const CacheAccess&, const CacheResult& result, std::vector<uint64_t>& lines) override {
        for (uint64_t line = result.line + 1; line <= result.line + degree_ && page_.allows(result.line, line); ++line)
            lines.push_back(line);
    }

    void archive(Archive&) override {}

  private:
    PageBound page_;
    uint32_t degree_;
};

static const Prefetcher::Row row("next_line", [](const Config& parameters, unsigned line_shift) {
    return std::unique_ptr<Prefetcher>(std::make_unique<NextLine>(parameters, line_shift));
});

}  // namespace perfemu
