#include "instructions/encoding.hpp"

#include <cstddef>
#include <cstring>

namespace perfemu {
namespace {

// Reads bytes one by one; what lies behind their end makes it bad.
class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
    uint8_t peek() const { return at_ < bytes_.size() ? bytes_[at_] : 0; }
    uint8_t next() {
        good_ &= at_ < bytes_.size();
        return good_ ? bytes_[at_++] : 0;
    }
    int32_t next_32() {
        uint32_t value = 0;
        for (int shift = 0; shift < 32; shift += 8) value |= uint32_t{next()} << shift;
        return static_cast<int32_t>(value);
    }
    bool good() const { return good_; }
    size_t position() const { return at_; }

  private:
    std::span<const uint8_t> bytes_;
    size_t at_ = 0;
    bool good_ = true;
};

constexpr uint8_t REX = 0x40, REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1;

struct Extensions {
    uint8_t rex = 0;
    uint8_t extend(uint8_t bit, uint8_t low) const { return static_cast<uint8_t>(low | (rex & bit ? 8 : 0)); }
};

// The legacy prefixes in front, and REX.
Extensions read_prefixes(Reader& reader, Encoding& encoding) {
    bool operand_size = false;
    uint8_t repeat = 0;
    for (;; reader.next()) {
        const uint8_t byte = reader.peek();
        if (byte == 0x66)
            operand_size = true;
        else if (byte == 0x67)
            encoding.address_32 = true;
        else if (byte == 0xf2 || byte == 0xf3)
            repeat = byte;
        else if (byte == 0xf0)
            encoding.lock = true;
        else if (byte == 0x64 || byte == 0x65)
            encoding.segment = byte;
        else if (byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26)
            continue;
        else
            break;
    }
    encoding.prefix = repeat == 0xf2   ? Encoding::F2
                      : repeat == 0xf3 ? Encoding::F3
                      : operand_size   ? Encoding::P66
                                       : Encoding::NONE;
    encoding.operand_16 = operand_size;
    Extensions extensions;
    encoding.rex = (reader.peek() & 0xf0) == REX;
    if (encoding.rex) extensions.rex = reader.next();
    encoding.wide = extensions.rex & REX_W;
    return extensions;
}

// The bits of VEX that extend registers are inverted.
Extensions read_vex(Reader& reader, Encoding& encoding) {
    static constexpr Encoding::Prefix PREFIXES[] = {Encoding::NONE, Encoding::P66, Encoding::F3, Encoding::F2};
    const bool three_bytes = reader.next() == 0xc4;
    const uint8_t first = reader.next();
    const uint8_t last = three_bytes ? reader.next() : first;
    Extensions extensions;
    const auto inverted = static_cast<uint8_t>(~first);
    extensions.rex = static_cast<uint8_t>((inverted >> 7 & 1) * REX_R);
    if (three_bytes) extensions.rex |= static_cast<uint8_t>(inverted >> 5 & (REX_X | REX_B));
    encoding.vex = true;
    encoding.wide = three_bytes && last & 0x80;
    encoding.vex_256 = last & 4;
    encoding.third_register = static_cast<uint8_t>(~last >> 3 & 15);
    encoding.prefix = PREFIXES[last & 3];
    encoding.map = three_bytes ? static_cast<Encoding::Map>(first & 31) : Encoding::MAP_0F;
    return extensions;
}

void read_operands(Reader& reader, const Extensions& extensions, Encoding& encoding) {
    const uint8_t modrm = reader.next(), mod = modrm >> 6, low = modrm & 7;
    encoding.reg = extensions.extend(REX_R, modrm >> 3 & 7);
    if (mod == 3) {
        encoding.rm = extensions.extend(REX_B, low);
        return;
    }
    uint8_t base = low;
    if (low == 4) {
        const uint8_t sib = reader.next();
        encoding.scale = sib >> 6;
        const uint8_t index = extensions.extend(REX_X, sib >> 3 & 7);
        if (index != 4) encoding.index = index;
        base = sib & 7;
    }
    const bool no_base = mod == 0 && base == 5;
    if (!no_base) encoding.base = extensions.extend(REX_B, base);
    if (no_base && low == 5) encoding.base = Encoding::INSTRUCTION_POINTER;
    if (mod == 1) encoding.displacement = static_cast<int8_t>(reader.next());
    if (mod == 2 || no_base) encoding.displacement = reader.next_32();
}

// Opcodes of one byte that are looked at.
constexpr uint8_t OF_ONE_BYTE[] = {0x8c, 0x8e, 0x9e, 0x9f, 0xc2, 0xc8, 0xd9, 0xda, 0xdb, 0xf6, 0xf7};
constexpr uint8_t RETURN = 0xc2, ENTER = 0xc8;

bool has_immediate_16(const Encoding& encoding) {
    return encoding.map == Encoding::ONE_BYTE && (encoding.opcode == RETURN || encoding.opcode == ENTER);
}

bool has_immediate(const Encoding& encoding) {
    static constexpr uint8_t OF_0F[] = {0x0f, 0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6};
    return encoding.map == Encoding::MAP_0F3A || (encoding.map == Encoding::ONE_BYTE && encoding.opcode == ENTER) ||
           (encoding.map == Encoding::MAP_0F && std::memchr(OF_0F, encoding.opcode, sizeof OF_0F));
}

bool has_operands(const Encoding& encoding) {
    // System instructions, and those whose register is in the opcode.
    static constexpr uint8_t NONE_IN_0F[] = {0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x30, 0x31, 0x32, 0x33,
                                             0x34, 0x35, 0x37, 0x77, 0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa};
    static constexpr uint8_t NONE_OF_ONE_BYTE[] = {0x9e, 0x9f, RETURN, ENTER};
    if (encoding.map == Encoding::ONE_BYTE)
        return !std::memchr(NONE_OF_ONE_BYTE, encoding.opcode, sizeof NONE_OF_ONE_BYTE);
    if (encoding.map != Encoding::MAP_0F) return true;
    const bool far_jump = encoding.opcode >= 0x80 && encoding.opcode <= 0x8f, swap = encoding.opcode >> 3 == 0xc8 >> 3;
    return !far_jump && !swap && !std::memchr(NONE_IN_0F, encoding.opcode, sizeof NONE_IN_0F);
}

}  // namespace

std::optional<Encoding> decode_encoding(std::span<const uint8_t> bytes) {
    Encoding encoding;
    Reader reader(bytes);
    Extensions extensions = read_prefixes(reader, encoding);
    if (reader.peek() == 0xc4 || reader.peek() == 0xc5) {
        extensions = read_vex(reader, encoding);
    } else if (reader.peek() == 0x0f) {
        reader.next();
        encoding.map = Encoding::MAP_0F;
        if (reader.peek() == 0x38) encoding.map = Encoding::MAP_0F38;
        if (reader.peek() == 0x3a) encoding.map = Encoding::MAP_0F3A;
        if (encoding.map != Encoding::MAP_0F) reader.next();
    } else if (!std::memchr(OF_ONE_BYTE, reader.peek(), sizeof OF_ONE_BYTE)) {
        return {};
    }
    if (encoding.map > Encoding::MAP_0F3A || (encoding.vex && encoding.map == Encoding::ONE_BYTE)) return {};
    encoding.opcode_at = static_cast<uint8_t>(reader.position());
    encoding.opcode = reader.next();
    if (has_operands(encoding)) {
        encoding.modrm_at = static_cast<uint8_t>(reader.position());
        read_operands(reader, extensions, encoding);
    }
    if (has_immediate_16(encoding)) {
        encoding.immediate_16 = reader.next();
        encoding.immediate_16 |= static_cast<uint16_t>(reader.next() << 8);
    }
    if (has_immediate(encoding)) encoding.immediate = reader.next();
    if (!reader.good()) return {};
    encoding.length = static_cast<uint8_t>(reader.position());
    return encoding;
}

}  // namespace perfemu
