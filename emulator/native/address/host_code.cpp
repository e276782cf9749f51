#include "address/host_code.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace perfemu {

static constexpr unsigned REGISTER_OPERAND = 0xC0, BYTE_DISPLACEMENT = 0x40, WORD_DISPLACEMENT = 0x80;

void HostAssembler::word(int32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) byte(static_cast<uint32_t>(value) >> shift & 0xFF);
}

void HostAssembler::memory(Register reg, unsigned opcode, Register base, int32_t displacement) {
    prefix(reg, base);
    byte(opcode);
    operand(reg & 7, base, displacement);
}

void HostAssembler::operand(unsigned reg, Register base, int32_t displacement) {
    const bool near = displacement == static_cast<int8_t>(displacement);
    byte((near ? BYTE_DISPLACEMENT : WORD_DISPLACEMENT) | reg << 3 | (base & 7));
    near ? byte(displacement & 0xFF) : word(displacement);
}

// Of 32 bits.
void HostAssembler::half_memory(unsigned opcode, unsigned extension, Register base, int32_t displacement) {
    if (base >> 3) byte(0x41);
    byte(opcode);
    operand(extension, base, displacement);
}

void HostAssembler::compare_with_zero(Register base, int32_t displacement) {
    half_memory(0x83, 7, base, displacement);
    byte(0);
}

void HostAssembler::increment(Register base, int32_t displacement) { half_memory(0xFF, 0, base, displacement); }

void HostAssembler::registers(Register into, unsigned opcode, Register from) {
    prefix(from, into);
    byte(opcode);
    byte(REGISTER_OPERAND | (from & 7) << 3 | (into & 7));
}

void HostAssembler::with_constant(unsigned extension, Register reg, int32_t value) {
    prefix(RAX, reg);
    byte(0x81);
    byte(REGISTER_OPERAND | extension << 3 | (reg & 7));
    word(value);
}

void HostAssembler::load_bytes(Register into, Register base, Register index, unsigned size, bool sign) {
    if (size == 4 && !sign) {  // a load of 32 bits clears the rest
        if (into >> 3) byte(0x44);
    } else {
        prefix(into, base);
    }
    switch (size) {
        case 1: byte(0x0F), byte(sign ? 0xBE : 0xB6); break;
        case 2: byte(0x0F), byte(sign ? 0xBF : 0xB7); break;
        case 4: byte(sign ? 0x63 : 0x8B); break;
        default: byte(0x8B);
    }
    byte(4 | (into & 7) << 3);
    byte((index & 7) << 3 | (base & 7));
}

void HostAssembler::load_constant(Register into, uint64_t value) {
    prefix(RAX, into);
    const auto low = static_cast<int32_t>(value);
    if (static_cast<uint64_t>(int64_t{low}) == value) {
        byte(0xC7);
        byte(REGISTER_OPERAND | (into & 7));
        word(low);
        return;
    }
    byte(0xB8 | (into & 7));
    word(low);
    word(static_cast<int32_t>(value >> 32));
}

void HostAssembler::multiply(Register into, Register from) {
    prefix(into, from);
    byte(0x0F);
    byte(0xAF);
    byte(REGISTER_OPERAND | (into & 7) << 3 | (from & 7));
}

void HostAssembler::shift(Shift how, Register of, unsigned bits) {
    if (bits == 0) return;
    prefix(RAX, of);
    byte(0xC1);
    byte(REGISTER_OPERAND | how << 3 | (of & 7));
    byte(bits);
}

void HostAssembler::shift_by_count(Shift how, Register of, bool low_half) {
    if (!low_half)
        prefix(RAX, of);
    else if (of >> 3)
        byte(0x41);
    byte(0xD3);
    byte(REGISTER_OPERAND | how << 3 | (of & 7));
}

void HostAssembler::with_one(unsigned extension, Register of) {
    prefix(RAX, of);
    byte(0xF7);
    byte(REGISTER_OPERAND | extension << 3 | (of & 7));
}

void HostAssembler::set_flags(FlagSetter how, Register left, Register right, bool low_half) {
    if (!low_half)
        prefix(right, left);
    else if (left >> 3 || right >> 3)
        byte(0x40 | (right >> 3) << 2 | left >> 3);
    byte(how);
    byte(REGISTER_OPERAND | (right & 7) << 3 | (left & 7));
}

void HostAssembler::set_if(Condition condition, Register into) {
    byte(0x0F);
    byte(0x90 | condition);
    byte(REGISTER_OPERAND | into);
    byte(0x0F);  // MOVZX
    byte(0xB6);
    byte(REGISTER_OPERAND | into << 3 | into);
}

void HostAssembler::move_if(Condition condition, Register into, Register from) {
    prefix(into, from);
    byte(0x0F);
    byte(0x40 | condition);
    byte(REGISTER_OPERAND | (into & 7) << 3 | (from & 7));
}

void HostAssembler::clear_high_half(Register of) {
    if (of >> 3) byte(0x45);
    byte(0x89);
    byte(REGISTER_OPERAND | (of & 7) << 3 | (of & 7));
}

void HostAssembler::extend_low_half(Register of) {
    prefix(of, of);
    byte(0x63);
    byte(REGISTER_OPERAND | (of & 7) << 3 | (of & 7));
}

void HostAssembler::fail_if(Condition condition) {
    byte(0x0F);
    byte(0x80 | condition);
    failures_.push_back(code_.size());
    word(0);
}

void HostAssembler::bind_failures() {
    for (size_t place : failures_) {
        const auto distance = static_cast<int32_t>(code_.size() - (place + sizeof(int32_t)));
        std::memcpy(&code_[place], &distance, sizeof distance);
    }
}

void HostAssembler::fail_to(Register base, int32_t displacement) {
    bind_failures();
    half_memory(0xFF, 4, base, displacement);
}

void HostAssembler::fail() {
    if (failures_.empty()) return;
    bind_failures();
    byte(0x31);  // XOR EAX, EAX
    byte(0xC0);
    return_value();
}

HostCode::~HostCode() { clear(); }

void HostCode::clear() {
    for (const Chunk& chunk : chunks_) {
        munmap(chunk.written, CHUNK_BYTES);
        munmap(chunk.executed, CHUNK_BYTES);
    }
    chunks_.clear();
    used_ = CHUNK_BYTES;
}

bool HostCode::add_chunk() {
#if defined(__x86_64__) && defined(__linux__)
    if (chunks_.size() == MOST_CHUNKS) return false;
    const int file = memfd_create("perfemu-code", MFD_CLOEXEC);
    if (file < 0) return false;
    auto view = [&](int protection) {
        void* address = mmap(nullptr, CHUNK_BYTES, protection, MAP_SHARED, file, 0);
        return address == MAP_FAILED ? nullptr : static_cast<uint8_t*>(address);
    };
    const bool sized = ftruncate(file, CHUNK_BYTES) == 0;
    const Chunk chunk = {sized ? view(PROT_READ | PROT_WRITE) : nullptr, sized ? view(PROT_READ | PROT_EXEC) : nullptr};
    close(file);
    if (chunk.written && chunk.executed) {
        chunks_.push_back(chunk);
        used_ = 0;
        return true;
    }
    if (chunk.written) munmap(chunk.written, CHUNK_BYTES);
    if (chunk.executed) munmap(chunk.executed, CHUNK_BYTES);
#endif
    return false;
}

const void* HostCode::add(std::span<const uint8_t> code) {
    if (code.size() > CHUNK_BYTES - used_ && (code.size() > CHUNK_BYTES || !add_chunk())) return nullptr;
    const Chunk& chunk = chunks_.back();
    std::memcpy(chunk.written + used_, code.data(), code.size());
    const uint8_t* place = chunk.executed + used_;
    used_ += code.size();
    return place;
}

}  // namespace perfemu
