#include "timing/execution.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <stdexcept>

namespace perfemu {

[[noreturn]] static void wrong(const std::string& what) { throw std::invalid_argument(what); }

static unsigned within(int64_t value, int64_t least, int64_t most, const std::string& path) {
    if (value < least) wrong(path + ": " + std::to_string(value) + ", must be at least " + std::to_string(least));
    if (value > most) wrong(path + ": " + std::to_string(value) + ", must be at most " + std::to_string(most));
    return static_cast<unsigned>(value);
}

unsigned checked(const Config& table, const char* key, int64_t least, int64_t most) {
    return within(table.integer(key), least, most, table.path(key));
}

unsigned checked(const Config& table, const char* key, int64_t least, int64_t most, int64_t otherwise) {
    return within(table.integer(key, otherwise), least, most, table.path(key));
}

static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
}

Fusion::Fusion(const Config& pipeline) {
    for (const std::string& kind : pipeline.texts("fuses")) {
        if (kind == "compare_branch")
            compare_branch = true;
        else if (kind == "arithmetic_branch")
            arithmetic_branch = true;
        else if (kind == "aes")
            aes = true;
        else if (kind == "move_computation")
            move_computation = true;
        else
            wrong("pipeline.fuses: there is no '" + kind +
                  "', but compare_branch, arithmetic_branch, aes, move_computation");
    }
}

bool Fusion::first_of_branch(const TimedOp& op) const {
    return op.compares && !op.memory_or_immediate && (arithmetic_branch || (compare_branch && op.compare_only));
}

Pairing pairing_of(const Config& table, const char* key, const std::string& path) {
    if (!table.has(key)) return Pairing::BOTH;
    const std::string& text = table.text(key);
    static const std::map<std::string, Pairing> known = {
        {"both", Pairing::BOTH}, {"first", Pairing::FIRST}, {"second", Pairing::SECOND}, {"none", Pairing::NONE}};
    auto found = known.find(text);
    if (found == known.end()) wrong(path + ": '" + text + "', must be both, first, second or none");
    return found->second;
}

Execution::Item Execution::parse_item(const std::string& text, const std::string& path) {
    Item item;
    size_t end = text.find_first_of("*@");
    std::string names = text.substr(0, end);
    for (size_t from = 0; from <= names.size();) {
        size_t bar = std::min(names.find('|', from), names.size());
        item.ports.push_back(names.substr(from, bar - from));
        from = bar + 1;
    }
    while (end != std::string::npos) {
        bool count = text[end] == '*';
        size_t next = text.find_first_of("*@", end + 1);
        std::string digits = text.substr(end + 1, next == std::string::npos ? next : next - end - 1);
        unsigned value = 0;
        auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || rest != digits.data() + digits.size() || value == 0 || value > (count ? 64 : 900))
            wrong(path + ": '" + text + "', must be like \"P0\", \"P0|P1\", \"P0*2\" or \"P0@24\"");
        (count ? item.count : item.busy_cycles) = value;
        end = next;
    }
    return item;
}

uint32_t Execution::mask(const std::vector<std::string>& names, const std::string& path) const {
    uint32_t ports = 0;
    for (const std::string& name : names) {
        auto found = std::find(ports_.begin(), ports_.end(), name);
        if (found == ports_.end())
            wrong(path + ": there is no port '" + name + "' in pipeline.ports: " + joined(ports_));
        ports |= uint32_t{1} << (found - ports_.begin());
    }
    return ports;
}

uint8_t Execution::group(uint32_t ports, unsigned busy_cycles) {
    PortGroup wanted{ports, static_cast<uint16_t>(busy_cycles)};
    auto found = std::find(groups_.begin(), groups_.end(), wanted);
    if (found == groups_.end()) {
        if (groups_.size() == 255) wrong("ops: more than 255 different sets of ports and busy_cycles");
        found = groups_.insert(found, wanted);
    }
    return static_cast<uint8_t>(found - groups_.begin());
}

// How much each port is wanted: a row's share is one, spread over its alternatives.
void Execution::order_ports(const Config& config) {
    const Config& pipeline = config.table("pipeline");
    std::vector<std::string> names = pipeline.texts("ports");
    if (names.empty() || names.size() > 32)
        wrong("pipeline.ports: " + std::to_string(names.size()) + " names, must be 1 to 32");
    std::map<std::string, double> wanted;
    for (const std::string& name : names)
        if (!wanted.emplace(name, 0.0).second) wrong("pipeline.ports: '" + name + "' is there twice");
    auto want = [&](const std::vector<std::string>& ports) {
        for (const std::string& port : ports)
            if (auto found = wanted.find(port); found != wanted.end()) found->second += 1.0 / ports.size();
    };
    for (const char* key :
         {"load_ports", "store_address_ports", "store_data_ports", "vector_store_data_ports", "write_back_ports"})
        want(pipeline.texts(key));
    for (const auto& [name, row] : config.table("ops").tables()) {
        want(row.texts("ports"));
        for (const std::string& item : row.texts("also")) want(parse_item(item, row.path("also")).ports);
    }
    std::stable_sort(names.begin(), names.end(),
                     [&](const std::string& left, const std::string& right) { return wanted[left] < wanted[right]; });
    ports_ = names;
}

void Execution::read_row(OpClass op_class, const Config& row, const Config* base, const std::string& path,
                         ClassTiming& timing) {
    auto of = [&](const char* key) -> const Config& { return base && !row.has(key) ? *base : row; };
    bool nop = op_class == OpClass::NOP;
    timing.known = true;
    const Config& latency = of("latency");
    timing.latency = nop ? checked(latency, "latency", 0, 10000, 0) : checked(latency, "latency", 1, 10000);
    timing.accumulate_latency = static_cast<uint16_t>(
        checked(of("accumulate_latency"), "accumulate_latency", 1, 10000, std::max<int64_t>(timing.latency, 1)));
    if (timing.accumulate_latency > timing.latency && !nop)
        wrong(path + "accumulate_latency: " + std::to_string(timing.accumulate_latency) +
              ", must be at most the latency, " + std::to_string(timing.latency));
    timing.chain_latency = static_cast<uint16_t>(
        checked(of("chain_latency"), "chain_latency", 1, 10000, std::max<int64_t>(timing.latency, 1)));
    if (timing.chain_latency > timing.latency && !nop)
        wrong(path + "chain_latency: " + std::to_string(timing.chain_latency) + ", must be at most the latency, " +
              std::to_string(timing.latency));
    timing.pairing = pairing_of(of("dual_issue"), "dual_issue", path + "dual_issue");
    const Config& ports = of("ports");
    if (!ports.has("ports") && !nop) wrong(path + "ports: missing; [] for none");
    uint32_t alternatives = mask(ports.texts("ports"), path + "ports");
    unsigned busy = checked(of("busy_cycles"), "busy_cycles", 1, 900, 1);
    timing.first = {group(alternatives, busy)};
    timing.busiest_cycles = static_cast<uint16_t>(busy);
    timing.others.clear();
    for (const std::string& text : of("also").texts("also")) {
        Item item = parse_item(text, path + "also");
        uint8_t other = group(mask(item.ports, path + "also"), item.busy_cycles);
        timing.others.insert(timing.others.end(), item.count, PortUse{other});
        timing.busiest_cycles = std::max<uint16_t>(timing.busiest_cycles, item.busy_cycles);
    }
    size_t items = 1 + timing.others.size();
    timing.micro_ops = static_cast<uint8_t>(checked(of("micro_ops"), "micro_ops", 0, 200, items));
    if (timing.micro_ops > items)
        timing.others.insert(timing.others.end(), timing.micro_ops - items, PortUse{group(alternatives, 1)});
    if (alternatives == 0) std::erase_if(timing.others, [&](PortUse use) { return groups_[use.group].ports == 0; });
}

// One that both may take; what has none goes where branches go.
void Execution::find_ports_with_branch() {
    const ClassTiming& branches = rows_[static_cast<unsigned>(OpClass::BRANCH)][WIDTHS - 1];
    if (!branches.known) return;
    const PortUse branch = branches.first;
    for (auto& by_width : rows_)
        for (ClassTiming& timing : by_width) {
            const uint32_t common = groups_[timing.first.group].ports & groups_[branch.group].ports;
            timing.with_branch = timing.known && common ? PortUse{group(common, 1)} : branch;
        }
}

static const char* name_of(OpClass op_class) { return OP_CLASS_NAMES[static_cast<unsigned>(op_class)]; }

static unsigned width_index(unsigned width_bytes) {
    return std::min<unsigned>(std::bit_width(std::max(width_bytes, 1U)) - 1, 6);
}

Execution::Execution(const Config& config) {
    const Config& pipeline = config.table("pipeline");
    const Config& ops = config.table("ops");
    order_ports(config);
    std::map<std::string, OpClass> classes;
    for (unsigned index = 0; index < OP_CLASS_COUNT; ++index)
        classes[OP_CLASS_NAMES[index]] = static_cast<OpClass>(index);
    for (const auto& [name, row] : ops.tables()) {
        auto found = classes.find(name);
        if (found == classes.end() || found->second == OpClass::NONE)
            wrong("ops." + name + ": there is no such class; emulator/op_classes.py lists them");
        auto& by_width = rows_[static_cast<unsigned>(found->second)];
        read_row(found->second, row, nullptr, row.path(""), by_width[0]);
        std::fill(by_width.begin() + 1, by_width.end(), by_width[0]);
        if (!row.has_table("width")) continue;
        for (const auto& [width, keys] : row.table("width").tables()) {
            unsigned bytes = static_cast<unsigned>(std::atoi(width.c_str()));
            if (!std::has_single_bit(bytes) || bytes > 64)
                wrong(keys.path("") + " an operand has 1, 2, 4, 8, 16, 32 or 64 bytes");
            read_row(found->second, keys, &row, keys.path(""), by_width[width_index(bytes)]);
        }
    }
    find_ports_with_branch();
    // Without a row: a slot, no port, no time.
    uint8_t nothing = group(0, 1);
    for (ClassTiming& nop : rows_[static_cast<unsigned>(OpClass::NOP)])
        if (!nop.known) nop = {.known = true, .micro_ops = 1, .first = {nothing}, .others = {}};

    auto use = [&](const char* key, bool required) {
        std::vector<std::string> names = pipeline.texts(key);
        if (required && names.empty()) wrong(std::string("pipeline.") + key + ": missing");
        return PortUse{group(mask(names, std::string("pipeline.") + key), 1)};
    };
    load = use("load_ports", true);
    store_address = use("store_address_ports", true);
    store_data = use("store_data_ports", false);
    vector_store_data =
        pipeline.texts("vector_store_data_ports").empty() ? store_data : use("vector_store_data_ports", false);
    write_back = use("write_back_ports", false);
    has_store_data = groups_[store_data.group].ports != 0;
    has_write_back = groups_[write_back.group].ports != 0;
    load_bytes = checked(pipeline, "load_bytes", 1, 4096, 16);
    load_registers_ = checked(pipeline, "load_registers", 0, 16, 0);
    store_bytes = checked(pipeline, "store_bytes", 1, 4096, 16);
}

const ClassTiming& Execution::timing(OpClass op_class, unsigned width_bytes) const {
    const ClassTiming& found = rows_[static_cast<unsigned>(op_class)][width_index(width_bytes)];
    if (!found.known)
        wrong(std::string("ops.") + name_of(op_class) + ": missing, but the program has such an instruction; add " +
              name_of(op_class) + " = { latency = ..., ports = [...] }");
    return found;
}

unsigned Execution::load_micro_ops(const TimedOp& op, unsigned bytes) const {
    if (op.prefetches) return 1;
    return std::max(pieces(bytes, load_bytes), load_registers_ ? pieces(op.lanes_loaded, load_registers_) : 1);
}

bool divides(OpClass op_class) {
    switch (op_class) {
        case OpClass::DIV32:
        case OpClass::DIV64:
        case OpClass::FP_DIV32:
        case OpClass::FP_DIV64:
        case OpClass::FP_SQRT32:
        case OpClass::FP_SQRT64:
        case OpClass::VECTOR_DIV32:
        case OpClass::VECTOR_DIV64:
        case OpClass::VECTOR_SQRT32:
        case OpClass::VECTOR_SQRT64:
        case OpClass::X87_DIV: return true;
        default: return false;
    }
}

bool loads_vector(const TimedOp& op) {
    return is_vector(op.destinations[0]) || (op.destinations[0] == timed_register::NONE && is_vector(op.sources[0]));
}

std::vector<SiteRange> sites_by_op(std::span<const TimedOp> ops, std::span<const AccessSite> sites) {
    std::vector<SiteRange> ranges(ops.size());
    for (size_t index = sites.size(); index-- > 0;) {
        const AccessSite& site = sites[index];
        if (site.op >= ops.size()) continue;
        SiteRange& range = ranges[site.op];
        range.first = static_cast<uint16_t>(index);
        if (site.store) {
            range.stores++;
            range.store_bytes += site.size;
        } else {
            range.loads++;
            range.load_bytes += site.size;
        }
    }
    return ranges;
}

}  // namespace perfemu
