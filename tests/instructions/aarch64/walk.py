"""The instruction forms of A64, found by walking the encodings: forms.txt, which this writes.

Bits 31:10 are walked whole, bits 9:0 (two registers, mostly) in the few patterns without which something stays hidden.
Where many words of equal bits 31:21 are one form, the rest are not looked at: those are immediates.
llvm-mc says what each word is: with the extensions that every core offers, with those that cores with Armv8.2's
features offer besides (`later`), and with all that it knows. A form is what llvm-mc writes without its registers and
numbers. A line of the file is one form:

    offered, later or the extension's name, tab, form, tab, bits that may be anything, tab, words (with those bits zero)

    python -m tests.instructions.aarch64.walk
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FORMS = Path(__file__).with_name("forms.txt")
OFFERED, LATER = "offered", "later"
OURS = "+v8a,+fp-armv8,+neon,+crc,+aes,+sha2"
OURS_LATER = f"{OURS},+lse,+lor,+rdm,+dotprod,+fullfp16,+rcpc,+ccpp"
TRIPLE = ("llvm-mc-19", "-triple=aarch64", "-M", "no-aliases")
CHUNK = 1 << 18

LOW_BITS = 10
FIRST_PATTERN = 2 << 5 | 1  # Rn = 2, Rd = 1
# Where nothing is with the first one: comparisons, immediates, branches to registers, what has only a number
OTHER_PATTERNS = tuple(rn << 5 | rd for rn, rd in ((2, 0), (0, 0), (0, 1), (2, 8), (2, 16), (2, 24), (31, 31), (2, 13)))
SYSTEM = 0xD500_0000  # bits 31:22; these are walked to bit 5
EXCEPTIONS = 0xD400_0000  # bits 31:24; of these the immediate is left out
BLOCK_BITS = 21
PROBES = 100  # of a block, besides the words with one bit set
MOST_WORDS = 32  # of a form that no mask describes: so many, evenly
MOST_OTHER_WORDS = 6  # the same, of what the machine does not offer


@dataclass(frozen=True, slots=True)
class FormRow:
    extension: str
    name: str
    free: int
    words: tuple[int, ...]


def read_forms() -> list[FormRow]:
    forms = []
    for line in FORMS.read_text(encoding="utf-8").splitlines():
        extension, name, free, words = line.split("\t")
        forms.append(FormRow(extension, name, int(free, 16), tuple(int(word, 16) for word in words.split())))
    return forms


def disassembled(words: Iterable[int], features: str) -> dict[int, str]:
    """What llvm-mc makes of each word that it knows."""
    words = list(words)
    chunks = [words[at : at + CHUNK] for at in range(0, len(words), CHUNK)]
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda chunk: _disassembled(chunk, features), chunks)
        return {word: text for part in parts for word, text in part.items()}


def _disassembled(words: list[int], features: str) -> dict[int, str]:
    source = "\n".join(" ".join(map(hex, word.to_bytes(4, "little"))) for word in words)
    command = [*TRIPLE, "-disassemble", f"-mattr={features}"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    unknown = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: warning: invalid", done.stderr, re.MULTILINE)}
    known = [word for number, word in enumerate(words, 1) if number not in unknown]
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("\t") and line.strip() != ".text"]
    assert len(lines) == len(known), f"{len(lines)} lines for {len(known)} words"
    return dict(zip(known, lines, strict=True))


def canonical(texts: dict[int, str]) -> dict[int, str]:
    """Those that the assembler makes of their own text.

    Others have bits that should be one or zero and are not, or are unpredictable for another reason, such as a load
    into its own base: what an implementation makes of those is its own matter.
    """
    words = list(texts)
    done = subprocess.run(
        [*TRIPLE, f"-mattr={OURS_LATER}", "-show-encoding"],
        input="".join(f"{text}\n" for text in texts.values()), capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.MULTILINE)}
    assembled = [
        sum(int(byte, 16) << 8 * place for place, byte in enumerate(encoding.split(",")))
        for encoding in re.findall(r"// encoding: \[([0-9a-fx,]*)\]", done.stdout)
    ]
    kept = [word for number, word in enumerate(words, 1) if number not in refused]
    assert len(kept) == len(assembled), f"{len(assembled)} encodings for {len(kept)} lines"
    return {word: texts[word] for word, again in zip(kept, assembled, strict=True) if word == again}


REWRITTEN = [  # what belongs to one word only, and what stands for it
    (r"\s*//.*", ""),
    (r"\t", " "),
    (r"#-?(0x)?[0-9a-f.]+(e[+-]\d+)?", "#"),
    (r"(?<=[.a-z\d]\[)\d+\]|(?<=\}\[)\d+\]", "#]"),
    (r"\b(x\d+|xzr|sp)\b", "X"),
    (r"\b(w\d+|wzr|wsp)\b", "W"),
    (r"\b([bhsdqvz])\d+\b", r"\1"),
    (r"\b(p|pn)\d+\b", r"\1"),
    (r"\bc\d+\b", "C"),
    (r"\b(lsl|lsr|asr|ror) #", "shift #"),
    (r"\b[us]xt[bhwx]\b( #)?", "extend #"),
    (r", (eq|ne|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al|nv)$", ", cond"),
    (r"^b\.\w+", "b.cond"),
    (r"^bc\.\w+", "bc.cond"),
    (r"^(mrs X, ).*", r"\1register"),
    (r"^(msr ).*(, X)$", r"\1register\2"),
    (r"^(msr ).*(, #)$", r"\1field\2"),
    (r"^(at|dc|ic|tlbi|cfp|cpp|dvp) .*", "sys #, C, C, #, X"),
    (r"^tlbip .*", "sysp #, C, C, #, X, X"),
    (r"^sys #, C, C, #$", "sys #, C, C, #, X"),
    (r"^(prfm|prfum) [a-z\d#]+", r"\1 operation"),
    (r"^(rprfm|prf[bhwd]) [a-z\d#]+", r"\1 operation"),
    (r"^(dmb|dsb|isb) [a-z]\w*", r"\1 #"),
]


def form_name(text: str) -> str:
    for pattern, replacement in REWRITTEN:
        text = re.sub(pattern, replacement, text)
    return text


def mnemonic(text: str) -> str:
    return text.split()[0]


Naming = Callable[[str], str]


def _walk(uniform: set[int]) -> Iterator[int]:
    for high in range(1 << 32 - LOW_BITS):
        word = high << LOW_BITS
        apart = word & 0xFFC0_0000 == SYSTEM or word & 0xFF00_0000 == EXCEPTIONS
        if not apart and word >> BLOCK_BITS not in uniform:
            yield word | FIRST_PATTERN


def _hides(word: int) -> bool:
    """Whether the first pattern may not do: branches, and data processing with registers."""
    group = word >> 25 & 15
    return group in (10, 11) or group & 7 in (5, 7)


def _blocks(features: str) -> dict[int, str]:
    """The blocks (bits 31:21) that are one form each."""
    draw = random.Random(1)
    low = range(1 << BLOCK_BITS - LOW_BITS)
    probes = {0, low[-1], *(1 << bit for bit in range(BLOCK_BITS - LOW_BITS)), *draw.sample(low, PROBES)}
    asked = {
        block: [block << BLOCK_BITS | probe << LOW_BITS | FIRST_PATTERN for probe in probes]
        for block in range(1 << 32 - BLOCK_BITS)
    }
    answers = disassembled((word for words in asked.values() for word in words), features)
    found = {}
    for block, words in asked.items():
        names = {form_name(answers[word]) if word in answers else "" for word in words}
        if len(names) == 1 and names != {""}:
            found[block] = names.pop()
    return found


def _numbered() -> Iterator[int]:
    """System instructions, and those that raise exceptions."""
    for low in range(1 << 17):
        yield from (SYSTEM | low << 5 | rt for rt in (1, 31))
    for kind in range(8):
        yield from (EXCEPTIONS | kind << 21 | 0xBE << 5 | low for low in range(32))


def _names(features: str) -> tuple[dict[int, str], dict[int, str]]:
    """What is walked, by word, and the blocks of one form."""
    blocks = _blocks(features)
    found = disassembled(_walk(set(blocks)), features)
    hidden = [word & -1 << LOW_BITS for word in _walk(set(blocks)) if word not in found and _hides(word)]
    for pattern in OTHER_PATTERNS:
        more = disassembled((word | pattern for word in hidden), features)
        found |= more
        hidden = [word for word in hidden if word | pattern not in more]
    found |= disassembled(_numbered(), features)
    return {word: form_name(text) for word, text in found.items()}, blocks


def _forms(
    names: dict[int, str], blocks: dict[int, str], features: str, named: Naming
) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Of each form the bits that may be anything, and the words without them."""
    by_name: dict[str, set[int]] = defaultdict(set)
    for word, name in names.items():
        by_name[name].add(word)
    of_blocks: dict[str, set[int]] = defaultdict(set)
    for block, name in blocks.items():
        of_blocks[name].add(block << BLOCK_BITS | FIRST_PATTERN)
    forms = {}
    low_free = _low_free({name: by_name[name] | of_blocks[name] for name in {*by_name, *of_blocks}}, features, named)
    for name, free in low_free.items():
        whole, single = of_blocks[name], by_name[name]
        if whole and not single:
            free |= (1 << BLOCK_BITS) - (1 << LOW_BITS)
        else:
            single |= {word | probe << LOW_BITS for word in whole for probe in (0, 5, 0x555, 0x2AA, 0x7FF)}
        forms[name] = _widened(single or whole, free)
    return forms


def _widened(words: set[int], free: int) -> tuple[int, tuple[int, ...]]:
    words = {word & ~free for word in words}
    for bit in (1 << number for number in range(LOW_BITS, 32)):
        if not free & bit and all(word ^ bit in words for word in words):
            free |= bit
            words = {word & ~bit for word in words}
    kept = sorted(words)
    return free, tuple(kept[:: max(1, -(-len(kept) // MOST_WORDS))])


def _low_free(by_name: dict[str, set[int]], features: str, named: Naming) -> dict[str, int]:
    """Which of the low bits may be anything: looked at in a few words of each form."""
    samples = {name: sorted(words)[:: max(1, len(words) // 8)] for name, words in by_name.items()}
    bits = [1 << number for number in range(LOW_BITS)]
    asked = {word ^ bit for words in samples.values() for word in words for bit in bits}
    answers = {word: named(text) for word, text in disassembled(asked, features).items()}
    return {
        name: sum(bit for bit in bits if all(answers.get(word ^ bit) == name for word in words))
        for name, words in samples.items()
    }


def _extension(text: str) -> str:
    """Which extension the assembler misses."""
    done = subprocess.run([*TRIPLE, f"-mattr={OURS}"], input=text, capture_output=True, text=True, check=False)
    missed = re.search(r"instruction requires: (.*)", done.stderr)
    return missed.group(1) if missed else "?"


def main() -> None:
    lines = []
    ours, our_blocks = _names(OURS)
    for name, (free, words) in sorted(_forms(ours, our_blocks, OURS, form_name).items()):
        lines.append(_line(OFFERED, name, free, words))
    later, later_blocks = _names(OURS_LATER)
    later = {word: name for word, name in later.items() if word not in ours and word >> BLOCK_BITS not in our_blocks}
    later_blocks = {block: name for block, name in later_blocks.items() if block not in our_blocks}
    for name, (free, words) in sorted(_forms(later, later_blocks, OURS_LATER, form_name).items()):
        lines.append(_line(LATER, name, free, words))
    everything, all_blocks = _names("+all")
    known = ours.keys()
    others = {
        word: mnemonic(name)
        for word, name in everything.items()
        if word not in known and word >> BLOCK_BITS not in our_blocks
    }
    other_blocks = {block: mnemonic(name) for block, name in all_blocks.items() if block not in our_blocks}
    for name, (free, words) in sorted(_forms(others, other_blocks, "+all", mnemonic).items()):
        (text,) = disassembled([words[0] | FIRST_PATTERN & free], "+all").values()
        lines.append(_line(_extension(text), name, free, words[:: max(1, -(-len(words) // MOST_OTHER_WORDS))]))
    FORMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(extension: str, name: str, free: int, words: tuple[int, ...]) -> str:
    return f"{extension}\t{name}\t{free:08x}\t{' '.join(f'{word:08x}' for word in words)}"


if __name__ == "__main__":
    main()
