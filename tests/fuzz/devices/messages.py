"""What a random driver puts into a queue: 9P messages and a disk's requests, near enough to right ones that they are
understood, and bytes that are none.
"""

from __future__ import annotations

import struct
from random import Random

# 9P2000.L: kind -> fields. f: a fid; d: a directory's; g: that may be new; n: a name; w: a walk's; 1 to 8: bytes of a
# number; s: a size or place; c: a count; o: flags of open(2); b: bytes; v: a version
FIELDS = {
    8: "f", 12: "fo", 14: "gno44", 16: "dnn4", 18: "dn4444", 20: "fdn", 22: "f", 24: "f8", 26: "f4444sssss", 30: "ffn",
    32: "fn84", 40: "fsc", 50: "f4", 52: "f14ss4n", 54: "f1ss4n", 70: "dfn", 72: "dn44", 74: "dndn", 76: "dn4",
    100: "cv", 102: "fnn4", 104: "gfnn4", 108: "2", 110: "dgw", 116: "fsc", 118: "fsb", 120: "g", 122: "g",
}  # fmt: skip
NAMES = (
    b"file", b"file2", b"directory", b"y", b"z", b"link", b"loop", b"out", b"escape", b"secret", b"new", b"new2", b"..",
    b".", b"", b"a/b", b"../outside/secret", b"/etc/passwd", b"x" * 255, b"x" * 256, b"zero\0", b"\xff\xfe",
)  # fmt: skip
OPEN_FLAGS = (0, 0, 1, 2, 0o1000, 0o1002, 0o2001, 0o100000, 0o200000, 0o40002, 0o10000002, 0xFFFF_FFFF)
ATTACH = struct.pack("<IBHII", 0, 104, 0, 0, ~0 & 0xFFFF_FFFF) + struct.pack("<H4sHI", 4, b"root", 0, 0)


def number(random: Random, bits: int) -> int:
    kind = random.randrange(6)
    if kind < 3:
        return random.randrange(20)
    if kind == 3:
        return (1 << random.randrange(bits + 1)) - random.randrange(2) & (1 << bits) - 1
    return random.choice((0, (1 << bits) - 1, 1 << (bits - 1))) if kind == 4 else random.getrandbits(bits)


def _field(random: Random, kind: str) -> bytes:
    match kind:
        case "f":
            return struct.pack("<I", random.choice((0, 1, 2, 3, 4, 1, 2, 3, 4, number(random, 32))))
        case "d":
            return struct.pack("<I", random.choice((0, 0, 0, 0, 1, number(random, 32))))
        case "g":
            return struct.pack("<I", random.choice((1, 2, 3, 4, 5, number(random, 32))))
        case "n":
            name = random.choice(NAMES[: random.choice((4, 11, len(NAMES)))])
            return struct.pack("<H", len(name)) + name
        case "o":
            return struct.pack("<I", random.choice(OPEN_FLAGS))
        case "w":
            steps = random.choice((0, 1, 1, 1, 1, 1, 2, 3, 16, 17))
            return struct.pack("<H", steps) + b"".join(_field(random, "n") for _ in range(steps))
        case "c":
            return struct.pack("<I", random.choice((0, 24, 4096, 65536, 1 << 20, 0xFFFF_FFFF)))
        case "b":
            size = random.choice((0, 1, 100, 4096))
            return struct.pack("<I", random.choice((size, size, size + 1, 0xFFFF_FFFF))) + random.randbytes(size)
        case "v":
            return struct.pack("<H", 8) + random.choice((b"9P2000.L", b"9P2000.u"))
        case "s":
            return struct.pack("<Q", random.choice((0, 0, 1, 2, 3, 8000, 1 << 20, number(random, 64))))
        case _:
            size = int(kind)
            return number(random, 8 * size).to_bytes(size, "little")


def nine_p(random: Random) -> bytes:
    if random.random() < 0.05:
        return ATTACH
    usual = (110, 110, 110, 12, 12, 14, 40, 116, 118, 120, 24, 26, 72, 74, 76)
    kind = random.choice((*usual, random.choice(list(FIELDS)), random.choice((0, 6, 255))))
    body = b"".join(_field(random, field) for field in FIELDS.get(kind, "44"))
    if random.random() < 0.05:
        body = body[: random.randrange(len(body) + 1)]
    return struct.pack("<IBH", random.choice((7 + len(body), 0, 0xFFFF_FFFF)), kind, random.randrange(4)) + body


def disk_request(random: Random) -> bytes:
    kind = random.choice((0, 0, 1, 1, 4, 8, number(random, 32)))
    sector = random.choice((0, 1, 5, 126, 127, 128, number(random, 64)))
    data = random.randbytes(random.choice((512, 512, 1024, 4096, 3))) if kind == 1 else b""
    return struct.pack("<I4xQ", kind, sector) + data


def verdict(random: Random) -> bytes:
    return random.choice((b"0", b"12", b"abc", b"9" * 30, bytes(4096)))
