"""The forms of A64 that are tested: those of forms.txt, each with some encodings that the runner can execute.

Encodings are drawn, and llvm-mc says what they are: of the wanted form, with registers that the runner's state has
(runner/aarch64.c). From its text follows which inputs suit: where a base register has to point, and what is added.
"""

from __future__ import annotations

import random
import re
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.instructions.aarch64.walk import (
    LATER,
    OFFERED,
    OURS,
    OURS_LATER,
    FormRow,
    canonical,
    disassembled,
    form_name,
    read_forms,
)
from tests.instructions.form import Encoding, Form
from tests.instructions.protocol import Layout

DIFFERENCES = Path(__file__).with_name("differences.toml")

GENERAL_NUMBERS = (0, 1, 2, 3, 4, 5, 30)
VECTOR_NUMBERS = (*range(9), 30, 31)
DRAWN_NUMBERS = (0, 1, 2, 3, 4, 5, 30, 31)
REGISTER_FIELDS = (0, 5, 10, 16)  # where encodings mostly have registers
LAYOUT = Layout(
    (
        *(f"x{number}" for number in GENERAL_NUMBERS),
        "sp", "second way", "nzcv", "fpcr", "fpsr",
        *(f"v{number}.d[{half}]" for number in VECTOR_NUMBERS for half in (0, 1)),
    )
)  # fmt: skip

DRAWS = 6  # for each encoding that is wanted; as often again for forms that get none
ROUNDS = 5
NOT_EXECUTED = ("svc #",)  # the runner's own system calls

# struct kind of runner/aarch64.c
HAS_BASE, HAS_INDEX, JUMPS = 1 << 10, 1 << 11, 1 << 12
LANE_SHIFT, DISPLACEMENT_SHIFT = 13, 16
LANES = [(r"fcvt\w* .*\bh\b|fcvtl|fcvtn", 1), (r"\bs\b|v\.[24]s", 2), (r"\bd\b|v\.[12]d", 3)]  # by name

# Branches with a displacement, and where that is: they are made to go to the runner's second way out.
DISPLACED = [
    (0x7C00_0000, 0x1400_0000, 0, 26),
    (0xFF00_0000, 0x5400_0000, 5, 19),
    (0x7E00_0000, 0x3400_0000, 5, 19),
    (0x7E00_0000, 0x3600_0000, 5, 14),
]
SECOND_WAY_WORDS = 8
LITERAL_MASK, LITERAL = 0x3B00_0000, 0x1800_0000
LOAD, PAIR, RS, RT, RT2 = 1 << 22, 1 << 21, 31 << 16, 31, 31 << 10
EXCLUSIVE_STORE = (0x3F40_0000, 0x0800_0000)  # STXR, STXP and those with release, if o2 (bit 23) is clear
SCRATCH, SCRATCH_2 = 6, 7  # registers that are no part of the state


def forms(encodings: int, wanted: str = "") -> list[Form]:
    """All forms that every core offers, or those with `wanted` in their names, with so many encodings each."""
    rows = [row for row in read_forms() if row.extension == OFFERED and row.name not in NOT_EXECUTED]
    return _drawn([*rows, *_system_registers(OURS)], encodings, wanted, OURS)


def later_forms(encodings: int, wanted: str = "") -> list[Form]:
    """The same of those that only cores with Armv8.2's features offer."""
    rows = [row for row in read_forms() if row.extension == LATER]
    known = {row.name for row in _system_registers(OURS)}
    system = [row for row in _system_registers(OURS_LATER) if row.name not in known]
    return _drawn([*rows, *system], encodings, wanted, OURS_LATER)


def _drawn(rows: list[FormRow], encodings: int, wanted: str, features: str) -> list[Form]:
    pools = {row.name: _Pool(row, encodings) for row in rows if wanted in row.name}
    for _ in range(ROUNDS):
        missing = [pool for pool in pools.values() if len(pool.found) < encodings]
        drawn = [(pool, word) for pool in missing for word in pool.draw()]
        texts = canonical(disassembled((word for _, word in drawn), features))
        for pool, word in drawn:
            if word in texts:
                pool.offer(word, texts[word])
    empty = [name for name, pool in pools.items() if not pool.found]
    assert not empty, f"no encoding was drawn of {empty}"
    return [Form(name, tuple(pool.found.values())) for name, pool in pools.items()]


def others(encodings: int, features: str = OURS) -> list[Form]:
    """What a machine with these features does not offer."""
    words: dict[str, set[int]] = defaultdict(set)
    for row in read_forms():
        if row.extension != OFFERED:
            draw = random.Random(row.name)
            words[row.name] |= {draw.choice(row.words) | draw.getrandbits(32) & row.free for _ in range(encodings)}
    known = disassembled({word for drawn in words.values() for word in drawn}, features)
    unknown = {name: sorted(drawn - known.keys()) for name, drawn in words.items()}
    return [
        Form(name, tuple(Encoding(struct.pack("<I", word)) for word in drawn))
        for name, drawn in unknown.items()
        if drawn
    ]


@dataclass(slots=True)
class _Pool:
    row: FormRow
    wanted: int
    found: dict[int, Encoding] = field(default_factory=dict)
    draws: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draws = random.Random(self.row.name)

    def draw(self) -> list[int]:
        return [self._drawn() for _ in range(DRAWS * (self.wanted - len(self.found)))]

    def _drawn(self) -> int:
        draws = self.draws
        word = draws.choice(self.row.words) | draws.getrandbits(32) & self.row.free
        if draws.random() < 0.5:  # forms whose words no mask describes
            word ^= 1 << draws.randrange(5, 24)
        for shift in REGISTER_FIELDS:
            if self.row.free >> shift & 31 == 31 and (shift != 10 or draws.random() < 0.5):
                number = 31 if shift >= 10 and draws.random() < 0.3 else draws.choice(DRAWN_NUMBERS)  # or fixed at that
                word = word & ~(31 << shift) | number << shift
        if word & LITERAL_MASK == LITERAL and draws.random() < 0.8:  # into the slot
            word = word & ~(0x7FFFF << 5) | draws.randrange(16) << 5
        for mask, value, shift, bits in DISPLACED:
            if word & mask == value:
                word = word & ~((1 << bits) - 1 << shift) | SECOND_WAY_WORDS << shift
        return word

    def offer(self, word: int, text: str) -> None:
        if len(self.found) < self.wanted and named(text) == self.row.name and _executable(text):
            self.found[word] = _encoding(word, text)


def named(text: str) -> str:
    """As `form_name`, with the names of those system registers and cache operations that user mode may reach."""
    if cache := re.match(r"(dc|ic)\s+(zva|cvau|cvac|cvap|civac|ivau), x", text):
        return f"{cache.group(1)} {cache.group(2)}"
    match = re.match(r"(mrs|msr)\s+(?:x\d+, |xzr, )?([a-z]\w*_el0|nzcv|fpcr|fpsr|\w*id\w*_el1)\b", text, re.IGNORECASE)
    return f"{match.group(1)} {match.group(2).lower()}" if match else form_name(text)


def _system_registers(features: str) -> list[FormRow]:
    """MRS and MSR of each register whose name ends in EL0, ID registers, the cache operations of user mode."""
    words = [0xD510_0000 | reads << 21 | 1 << 19 | 3 << 16 | low << 5 for reads in (0, 1) for low in range(1 << 11)]
    words += [0xD538_0000 | low << 5 for low in range(1 << 6)]
    words += [0xD50B_7000 | low << 5 for low in range(1 << 7)]
    return [
        FormRow(OFFERED, named(text), 31, (word,))
        for word, text in disassembled(words, features).items()
        if named(text) != form_name(text)
    ]


def _executable(text: str) -> bool:
    if re.match(r"ldn?px?(sw)?\s+(\w+), \2,", text):
        return False  # a load of two registers into one: unpredictable
    general = {int(number) for number in re.findall(r"\b[xw](\d+)\b", text)}
    vectors = {int(number) for number in re.findall(r"\b[vbhsdq](\d+)\b", text)}
    return general <= set(GENERAL_NUMBERS) and vectors <= set(VECTOR_NUMBERS)


def _encoding(word: int, text: str) -> Encoding:
    code = struct.pack("<I", word)
    mask, value = EXCLUSIVE_STORE
    if word & mask == value and not word & 1 << 23 and word >> 5 & 1:  # some bit: half of them succeed
        load = word & ~(RS | RT | RT2) | LOAD | RS | SCRATCH | (SCRATCH_2 << 10 if word & PAIR else RT2)
        code = struct.pack("<I", load) + code
    return Encoding(code, _kind(text))


def _kind(text: str) -> int:
    name = form_name(text)
    lane = next((number for pattern, number in LANES if re.search(pattern, name)), 0) << LANE_SHIFT
    if jump := re.match(r"(?:br|blr|ret)\s+x(\d+)", text):
        return lane | int(jump.group(1)) | HAS_BASE | JUMPS
    if line := re.match(r"(?:sys|dc|ic)\s.*\bx(\d+)$", text):
        return lane | int(line.group(1)) | HAS_BASE
    memory = re.search(r"\[(x\d+|sp)(?:, ([^]]*))?\]", text)
    if not memory:
        return lane
    base, rest = memory.groups()
    kind = lane | HAS_BASE | _number(base)
    if displacement := re.fullmatch(r"#(-?\d+)", rest or ""):
        return kind | (int(displacement.group(1)) & 0xFFFF) << DISPLACEMENT_SHIFT
    if rest:
        return kind | HAS_INDEX | _number(rest.split(",")[0]) << 5
    return kind


def _number(register: str) -> int:
    return int(register[1:]) if register[1:].isdigit() else 31
