// What a core file says about execution, ready for both pipelines: ports, and for each class what it needs of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config.hpp"
#include "op_classes.hpp"
#include "ops/access.hpp"
#include "ops/timed_op.hpp"

namespace perfemu {

// An integer key with its bounds. Throws std::invalid_argument with all of them.
unsigned checked(const Config& table, const char* key, int64_t least, int64_t most);
unsigned checked(const Config& table, const char* key, int64_t least, int64_t most, int64_t otherwise);

// Which kinds of pairs and renamings the file names; unknown ones throw.
struct Fusion {
    bool compare_branch = false, arithmetic_branch = false, aes = false, move_computation = false;
    explicit Fusion(const Config& pipeline);
    bool first_of_branch(const TimedOp& op) const;
};

// One micro-op takes one of these ports for so many cycles.
struct PortUse {
    uint8_t group = 0;  // index in Execution::groups()
};

struct PortGroup {
    uint32_t ports = 0;  // mask; none: nothing is needed
    uint16_t busy_cycles = 1;
    bool operator==(const PortGroup&) const = default;
};

enum class Pairing : uint8_t { BOTH, FIRST, SECOND, NONE };  // in dual issue

struct ClassTiming {
    bool known = false;
    uint16_t latency = 0;
    uint16_t accumulate_latency = 0;
    uint16_t chain_latency = 0;  // to the next of the same class
    uint8_t micro_ops = 0;
    Pairing pairing = Pairing::BOTH;
    uint16_t busiest_cycles = 0;  // of any of its ports
    PortUse first;                // what most have alone
    PortUse with_branch;          // instead, if a branch fused with it
    std::vector<PortUse> others;
};

class Execution {
  public:
    explicit Execution(const Config& config);

    // Throws std::invalid_argument if the file has no row for the op's class.
    const ClassTiming& timing(OpClass op_class, unsigned width_bytes) const;

    // Ports are numbered from the one that the rows need least to the one they need most: the lowest is taken first.
    const std::vector<std::string>& ports() const { return ports_; }
    const std::vector<PortGroup>& groups() const { return groups_; }
    uint32_t mask(const std::vector<std::string>& names, const std::string& path) const;

    // The number of such a group, which is made if there is none.
    uint8_t group(uint32_t ports, unsigned busy_cycles);

    PortUse load, store_address, store_data, vector_store_data, write_back;
    bool has_store_data = false, has_write_back = false;
    unsigned load_bytes = 16, store_bytes = 16;
    // Of a load of so many bytes, one after the other on each load port.
    unsigned load_micro_ops(const TimedOp& op, unsigned bytes) const;

  private:
    struct Item {  // of `also`
        std::vector<std::string> ports;
        unsigned count = 1, busy_cycles = 1;
    };
    static Item parse_item(const std::string& text, const std::string& path);
    void order_ports(const Config& config);
    void find_ports_with_branch();
    void read_row(OpClass op_class, const Config& row, const Config* base, const std::string& path,
                  ClassTiming& timing);
    unsigned load_registers_ = 0;          // that one micro-op fills; 0: any number
    static constexpr unsigned WIDTHS = 7;  // 1, 2, 4 ... 64 bytes
    std::vector<std::string> ports_;
    std::vector<PortGroup> groups_;
    std::array<std::array<ClassTiming, WIDTHS>, OP_CLASS_COUNT> rows_;
};

bool divides(OpClass op_class);
// Whether what the op loads goes to a vector register, or to a computation on one.
bool loads_vector(const TimedOp& op);
// How many micro-ops an access takes, of so many bytes each.
inline unsigned pieces(unsigned bytes, unsigned each) { return bytes > each ? (bytes + each - 1) / each : 1; }

Pairing pairing_of(const Config& table, const char* key, const std::string& path);

// A site, as far as its own access needs it.
struct AccessSize {
    uint16_t size = 0;
    uint16_t elements = 1;
};

// The sites of one instruction: [first, first + loads + stores), its loads first.
struct SiteRange {
    uint16_t first = 0;
    uint8_t loads = 0, stores = 0;
    uint16_t load_bytes = 0, store_bytes = 0;  // of all of them
    unsigned count() const { return unsigned{loads} + stores; }
};
std::vector<SiteRange> sites_by_op(std::span<const TimedOp> ops, std::span<const AccessSite> sites);

}  // namespace perfemu
