#include "engine/register_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "engine/registers.hpp"

namespace perfemu {

namespace {

using slice::FlagBits;

constexpr EntryRegister A64[] = {{0, UC_ARM64_REG_X0},
                                 {1, UC_ARM64_REG_X1},
                                 {2, UC_ARM64_REG_X2},
                                 {3, UC_ARM64_REG_X3},
                                 {4, UC_ARM64_REG_X4},
                                 {5, UC_ARM64_REG_X5},
                                 {6, UC_ARM64_REG_X6},
                                 {7, UC_ARM64_REG_X7},
                                 {8, UC_ARM64_REG_X8},
                                 {9, UC_ARM64_REG_X9},
                                 {10, UC_ARM64_REG_X10},
                                 {11, UC_ARM64_REG_X11},
                                 {12, UC_ARM64_REG_X12},
                                 {13, UC_ARM64_REG_X13},
                                 {14, UC_ARM64_REG_X14},
                                 {15, UC_ARM64_REG_X15},
                                 {16, UC_ARM64_REG_X16},
                                 {17, UC_ARM64_REG_X17},
                                 {18, UC_ARM64_REG_X18},
                                 {19, UC_ARM64_REG_X19},
                                 {20, UC_ARM64_REG_X20},
                                 {21, UC_ARM64_REG_X21},
                                 {22, UC_ARM64_REG_X22},
                                 {23, UC_ARM64_REG_X23},
                                 {24, UC_ARM64_REG_X24},
                                 {25, UC_ARM64_REG_X25},
                                 {26, UC_ARM64_REG_X26},
                                 {27, UC_ARM64_REG_X27},
                                 {28, UC_ARM64_REG_X28},
                                 {29, UC_ARM64_REG_X29},
                                 {30, UC_ARM64_REG_X30},
                                 {slice::A64_STACK, UC_ARM64_REG_SP},
                                 {slice::THREAD_POINTER, UC_ARM64_REG_TPIDR_EL0}};
constexpr EntryRegister X86[] = {{0, UC_X86_REG_RAX},
                                 {1, UC_X86_REG_RCX},
                                 {2, UC_X86_REG_RDX},
                                 {3, UC_X86_REG_RBX},
                                 {4, UC_X86_REG_RSP},
                                 {5, UC_X86_REG_RBP},
                                 {6, UC_X86_REG_RSI},
                                 {7, UC_X86_REG_RDI},
                                 {8, UC_X86_REG_R8},
                                 {9, UC_X86_REG_R9},
                                 {10, UC_X86_REG_R10},
                                 {11, UC_X86_REG_R11},
                                 {12, UC_X86_REG_R12},
                                 {13, UC_X86_REG_R13},
                                 {14, UC_X86_REG_R14},
                                 {15, UC_X86_REG_R15},
                                 {slice::THREAD_POINTER, UC_X86_REG_FS_BASE},
                                 {slice::GS_BASE, UC_X86_REG_GS_BASE}};

// Bytes to search: of the engine's struct for pointers, behind each pointer for the registers, behind those for the
// rest of the processor's state.
constexpr size_t ENGINE_BYTES = 8 << 10, BEHIND_POINTER = 128 << 10, STATE_BYTES = 16 << 10, FLAGS_BYTES = 2 << 10;
constexpr uint64_t LOWEST_POINTER = 1 << 16;

// Reads of memory that may not be mapped.
class OwnMemory {
  public:
    OwnMemory() : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {}
    ~OwnMemory() {
        if (file_ >= 0) close(file_);
    }
    OwnMemory(const OwnMemory&) = delete;
    OwnMemory& operator=(const OwnMemory&) = delete;

    // As many words as can be read.
    std::vector<uint64_t> words(uint64_t address, size_t bytes) const {
        std::vector<uint64_t> all(bytes / sizeof(uint64_t));
        ssize_t got = pread(file_, all.data(), bytes, static_cast<off_t>(address));
        all.resize(got > 0 ? static_cast<size_t>(got) / sizeof(uint64_t) : 0);
        return all;
    }

    // The first words, all or none. Into `into`, so that the copy is not itself where one looks.
    bool read(uint64_t address, std::span<uint64_t> into) const {
        auto bytes = static_cast<ssize_t>(into.size_bytes());
        return pread(file_, into.data(), into.size_bytes(), static_cast<off_t>(address)) == bytes;
    }

  private:
    int file_;
};

uint64_t* host_pointer(uint64_t address) { return reinterpret_cast<uint64_t*>(address); }

// Marked values are valid addresses, so that they may be put into segment bases.
uint64_t mark(unsigned index) { return 0x5ea7'0000'1000 + index * 0x1'0010ull; }

// Restores registers at the end of its life.
class SavedRegisters {
  public:
    SavedRegisters(uc_engine* engine, std::span<const EntryRegister> registers) : engine_(engine), which_(registers) {
        for (const EntryRegister& reg : which_) values_.push_back(read_register(engine_, reg.engine_number));
    }
    ~SavedRegisters() {
        for (size_t i = 0; i < which_.size(); i++) write_register(engine_, which_[i].engine_number, values_[i]);
    }
    SavedRegisters(const SavedRegisters&) = delete;
    SavedRegisters& operator=(const SavedRegisters&) = delete;

  private:
    uc_engine* engine_;
    std::span<const EntryRegister> which_;
    std::vector<uint64_t> values_;
};

size_t general_registers(uc_arch arch) { return arch == UC_ARCH_ARM64 ? 32 : 16; }

void write_marks(uc_engine* engine, std::span<const EntryRegister> registers, unsigned first_mark) {
    for (unsigned i = 0; i < registers.size(); i++)
        write_register(engine, registers[i].engine_number, mark(first_mark + i));
}

bool marked(std::span<const uint64_t> words, size_t count, unsigned first_mark) {
    if (words.size() < count) return false;
    for (unsigned i = 0; i < count; i++)
        if (words[i] != mark(first_mark + i)) return false;
    return true;
}

// Where the general registers lie in a row: 0 if nowhere, or in several places. Copies of the marks may lie about (in
// buffers of this search, for one); they do not follow when the registers change.
uint64_t find_general(uc_engine* engine, std::span<const EntryRegister> general) {
    constexpr unsigned FIRST = 100, SECOND = 200;
    OwnMemory memory;
    std::vector<uint64_t> places;
    write_marks(engine, general, FIRST);
    std::vector<uint64_t> pointers = memory.words(reinterpret_cast<uint64_t>(engine), ENGINE_BYTES);
    std::sort(pointers.begin(), pointers.end());
    pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
    for (uint64_t pointer : pointers) {
        if (pointer < LOWEST_POINTER || pointer >> 47 || pointer % sizeof(uint64_t)) continue;
        std::vector<uint64_t> words = memory.words(pointer, BEHIND_POINTER);
        for (size_t at = 0; at < words.size(); at++)
            if (marked(std::span(words).subspan(at), general.size(), FIRST))
                places.push_back(pointer + at * sizeof(uint64_t));
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    write_marks(engine, general, SECOND);
    std::array<uint64_t, slice::ENTRY_REGISTERS> now{};  // not on the heap, where stale copies are
    std::span<uint64_t> read = std::span(now).first(general.size());
    std::erase_if(places,
                  [&](uint64_t place) { return !memory.read(place, read) || !marked(read, general.size(), SECOND); });
    return places.size() == 1 ? places[0] : 0;
}

// What is written on either side is read on the other.
bool agrees(uc_engine* engine, int engine_number, uint64_t* place, unsigned index) {
    uint64_t first = mark(index) + 0x2000, second = mark(index) + 0x4000;
    write_register(engine, engine_number, first);
    bool there = *place == first;
    *place = second;
    bool back = read_register(engine, engine_number) == second;
    write_register(engine, engine_number, mark(index));
    return there && back;
}

// The one word behind the general registers that holds a register's mark, and follows when it changes; or nullptr.
uint64_t* find_other(uc_engine* engine, int engine_number, uint64_t* general, unsigned index) {
    constexpr unsigned ANOTHER = 300;
    std::vector<uint64_t> words = OwnMemory().words(reinterpret_cast<uint64_t>(general), STATE_BYTES);
    write_register(engine, engine_number, mark(ANOTHER + index));
    uint64_t* found = nullptr;
    for (size_t at = 0; at < words.size(); at++) {
        if (words[at] != mark(index) || general[at] != mark(ANOTHER + index)) continue;
        if (found) return nullptr;
        found = general + at;
    }
    write_register(engine, engine_number, mark(index));
    return found;
}

constexpr uint64_t N = 8, Z = 4, C = 2, V = 1;  // in this order the lowest bits of what follows
constexpr unsigned NZCV_SHIFT = 28;

void write_nzcv(uc_engine* engine, uint64_t bits) { write_register(engine, UC_ARM64_REG_NZCV, bits << NZCV_SHIFT); }

// The word that `is` accepts before and after one flag is set, beginning with all flags clear.
const uint32_t* find_flag(uc_engine* engine, const uint64_t* general, uint64_t flag,
                          const std::function<bool(uint32_t clear, uint32_t set)>& is) {
    const auto* words = reinterpret_cast<const uint32_t*>(general);
    constexpr size_t COUNT = FLAGS_BYTES / sizeof(uint32_t);
    write_nzcv(engine, 0);
    std::vector<uint32_t> clear(words, words + COUNT);
    write_nzcv(engine, flag);
    const uint32_t* found = nullptr;
    for (size_t at = 0; at < COUNT; at++) {
        if (clear[at] == words[at] || !is(clear[at], words[at])) continue;
        if (found) return nullptr;
        found = words + at;
    }
    return found;
}

FlagBits flags_in(const RegisterFile& file) {
    return {static_cast<bool>(*file.negative >> 31), *file.not_zero == 0, *file.carry != 0,
            static_cast<bool>(*file.overflow >> 31)};
}

uint64_t bits_of(FlagBits flags) {
    return (flags.negative ? N : 0) | (flags.zero ? Z : 0) | (flags.carry ? C : 0) | (flags.overflow ? V : 0);
}

bool locate_flags(uc_engine* engine, RegisterFile& file) {
    uint64_t before = read_register(engine, UC_ARM64_REG_NZCV);
    const uint64_t* general = file.registers[0];
    auto sign_appears = [](uint32_t clear, uint32_t set) { return clear >> 31 == 0 && set >> 31 == 1; };
    file.negative = find_flag(engine, general, N, sign_appears);
    file.not_zero = find_flag(engine, general, Z, [](uint32_t clear, uint32_t set) { return clear && !set; });
    file.carry = find_flag(engine, general, C, [](uint32_t clear, uint32_t set) { return clear == 0 && set == 1; });
    file.overflow = find_flag(engine, general, V, sign_appears);
    bool found = file.negative && file.not_zero && file.carry && file.overflow;
    for (uint64_t bits = 0; found && bits < 16; bits++) {
        write_nzcv(engine, bits);
        found = bits_of(flags_in(file)) == bits && bits_of(read_flags(engine, UC_ARCH_ARM64)) == bits;
    }
    write_register(engine, UC_ARM64_REG_NZCV, before);
    return found;
}

}  // namespace

std::span<const EntryRegister> entry_registers(uc_arch arch) {
    return arch == UC_ARCH_ARM64 ? std::span<const EntryRegister>(A64) : X86;
}

FlagBits read_flags(uc_engine* engine, uc_arch arch) {
    if (arch == UC_ARCH_ARM64) {
        uint64_t bits = read_register(engine, UC_ARM64_REG_NZCV) >> NZCV_SHIFT;
        return {(bits & N) != 0, (bits & Z) != 0, (bits & C) != 0, (bits & V) != 0};
    }
    constexpr uint64_t CF = 1 << 0, ZF = 1 << 6, SF = 1 << 7, OF = 1 << 11;
    uint64_t bits = read_register(engine, UC_X86_REG_EFLAGS);
    return {(bits & SF) != 0, (bits & ZF) != 0, (bits & CF) != 0, (bits & OF) != 0};
}

std::optional<RegisterFile> RegisterFile::locate(uc_engine* engine, uc_arch arch) {
    std::span<const EntryRegister> all = entry_registers(arch);
    SavedRegisters saved(engine, all);
    size_t count = general_registers(arch);
    uint64_t* general = host_pointer(find_general(engine, all.first(count)));
    if (!general) return std::nullopt;
    write_marks(engine, all, 0);
    RegisterFile file;
    for (unsigned i = 0; i < all.size(); i++) {
        uint64_t* place = i < count ? general + i : find_other(engine, all[i].engine_number, general, i);
        if (!place || !agrees(engine, all[i].engine_number, place, i)) return std::nullopt;
        file.registers[all[i].number] = place;
    }
    if (arch == UC_ARCH_ARM64 && !locate_flags(engine, file)) return std::nullopt;
    return file;
}

}  // namespace perfemu
