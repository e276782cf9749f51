"""Data addresses computed at the entry of blocks are those that the engine accesses, in every way, however it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

import access_hook
from native import traced
from native.bare import CODE, DATA, PAGE_SIZE, READ, WRITE, assemble
from native.random_aarch64 import RandomCode

GUESTS = Path(__file__).parents[3] / "guest_programs"
PROGRAMS = [
    ("memory_access",),
    ("recursion",),
    ("locked_operations",),
    ("self_modifying",),
    ("fresh_pages",),
    ("sort", "300"),
    ("integer_mix", "1"),
    ("compression", "1"),
    ("sha256", "1"),
]
ISAS = ["aarch64", "x86_64"]

# A loop whose second load's address comes through a vector register, so that only the first is known at the entry.
CHAINS = {
    "aarch64": f"""
    mov x0, #{DATA >> 16 << 16}
    mov x9, #20
    str x0, [x0]
1:  ldr d0, [x0]
    fmov x1, d0
    ldr x2, [x1, #8]
    str x9, [x1, #16]
    fmov d1, x1
    umov x3, v1.d[0]
    ldp x4, x5, [x3, #32]
    subs x9, x9, #1
    b.ne 1b
    svc #0
""",
    "x86_64": f"""
    mov $60, %eax
    mov ${DATA}, %ebx
    mov $20, %ebp
    mov %rbx, (%rbx)
1:  movq (%rbx), %xmm0
    movq %xmm0, %rcx
    mov 8(%rcx), %rdx
    mov %rbp, 16(%rcx)
    movq %rcx, %xmm1
    pextrq $0, %xmm1, %rsi
    movups 32(%rsi), %xmm2
    dec %rbp
    jne 1b
    syscall
""",
}


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program[0])
def arguments(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module", params=ISAS)
def isa(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def path(isa: str, arguments: tuple[str, ...]) -> Path:
    return GUESTS / arguments[0] / f"{isa}.elf"


@pytest.fixture(scope="module")
def expected(isa: str, path: Path, arguments: tuple[str, ...]) -> list[access_hook.Event]:
    return access_hook.of_program(isa, path, arguments[1:])


@pytest.mark.parametrize("way", traced.WAYS)
def test_a_programs_accesses_are_those_of_mem_hooks(
    isa: str, path: Path, arguments: tuple[str, ...], expected: list[access_hook.Event], way: str
) -> None:
    run = traced.program(isa, path, arguments[1:], way)
    run.finish()
    assert run.seen() == expected


def test_flushed_translations_lose_nothing(
    isa: str, path: Path, arguments: tuple[str, ...], expected: list[access_hook.Event]
) -> None:
    run = traced.program(isa, path, arguments[1:])
    run.finish(most_blocks=97, between=run.tracer.flush_translations)
    assert run.seen() == expected


def test_slices_made_again_lose_nothing(
    isa: str, path: Path, arguments: tuple[str, ...], expected: list[access_hook.Event]
) -> None:
    run = traced.program(isa, path, arguments[1:])
    run.finish(most_blocks=997, between=run.tracer.drop_slices)
    assert run.seen() == expected


def test_stepping_finds_the_same(isa: str) -> None:
    path = GUESTS / "memory_access" / f"{isa}.elf"
    run = traced.program(isa, path)
    run.finish(stepping=True)
    assert run.seen() == access_hook.of_program(isa, path)


@pytest.fixture(scope="module")
def chain(isa: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble(isa, CHAINS[isa], tmp_path_factory.mktemp("chain"))


@pytest.mark.parametrize("way", traced.WAYS)
def test_addresses_that_registers_do_not_tell_are_found_in_the_block(isa: str, chain: bytes, way: str) -> None:
    run = traced.bare(isa, chain, way)
    run.finish()
    seen = run.seen()
    assert seen == traced.reference(isa, chain)
    assert len(seen) == 1 + 20 * 5  # a store; load, load, store and two words of a pair or a vector, 20 times
    # The loop is in two blocks: entered from above, and from its end. Each is translated anew once.
    assert run.tracer.retranslations == (2 if way.startswith("slices") else 0)


def test_each_translation_gets_its_calls_again(isa: str, chain: bytes) -> None:
    run = traced.bare(isa, chain)
    run.finish(most_blocks=3, between=run.tracer.flush_translations)
    assert run.seen() == traced.reference(isa, chain)
    assert run.tracer.retranslations > 2


def test_stepping_and_running_may_alternate_in_such_a_block(isa: str, chain: bytes) -> None:
    run = traced.bare(isa, chain)
    stepping = False
    while run.tracer.run(4, stepping) != "syscall":
        stepping = not stepping
    assert run.seen() == traced.reference(isa, chain)


@pytest.mark.parametrize("stepping", [False, True])
def test_long_code_is_cut_anywhere(isa: str, stepping: bool, tmp_path: Path) -> None:
    """1,500 loads, each through the last one's result and a vector: cut at pages' ends, and elsewhere."""
    one = {"aarch64": "ldr d0, [x0]\nfmov x0, d0\n", "x86_64": "movq (%rbx), %xmm0\nmovq %xmm0, %rbx\n"}[isa]
    first = {
        "aarch64": f"mov x0, #{DATA}\nstr x0, [x0]\n",
        "x86_64": f"mov $60, %eax\nmov ${DATA}, %ebx\nmov %rbx, (%rbx)\n",
    }[isa]
    last = {"aarch64": "svc #0", "x86_64": "syscall"}[isa]
    code = assemble(isa, first + one * 1500 + last, tmp_path)
    run = traced.bare(isa, code)
    run.finish(stepping=stepping)
    seen = run.seen()
    assert seen == traced.reference(isa, code)
    assert [address for _, address, _, _ in seen] == [DATA] * 1501


def test_blocks_that_overlap_keep_their_calls(tmp_path: Path) -> None:
    """Blocks from `1`, `2` and `3` to the branch, entered in turn; removing one removes those before it."""
    code = assemble(
        "aarch64",
        f"""
        mov x0, #{DATA}
        str x0, [x0]
        mov x9, #30
        b 1f
    1:  ldr d0, [x0]
    2:  ldr d1, [x0]
    3:  ldr d2, [x0]
        fmov x1, d2
        ldr x2, [x1, x9, lsl #3]
        sub x9, x9, #1
        cbz x9, 9f
        tbnz x9, #0, 2b
        tbnz x9, #1, 3b
        b 1b
    9:  svc #0
    """,
        tmp_path,
    )
    run = traced.bare("aarch64", code)
    run.finish()
    assert run.seen() == traced.reference("aarch64", code)
    assert run.tracer.retranslations < 20


def test_a_load_that_meets_a_store_of_its_block_is_found_out(tmp_path: Path) -> None:
    """x1 and x2 point to the same word: at the entry, the pointer that is loaded from there is still the old one."""
    code = assemble(
        "aarch64",
        f"""
        mov x0, #{DATA}
        mov x1, x0
        mov x2, x0
        add x3, x0, #0x100
        mov x9, #3
        b 1f
    1:  str x3, [x1]
        ldr x4, [x2]
        ldr x5, [x4]
        add x3, x3, #8
        subs x9, x9, #1
        b.ne 1b
        svc #0
    """,
        tmp_path,
    )
    run = traced.bare("aarch64", code)
    run.finish()
    assert run.tracer.remade_slices == 1
    assert run.seen() == traced.reference("aarch64", code)
    assert [address for _, address, _, _ in traced.reference("aarch64", code)][2::3] == [
        DATA + 0x100,
        DATA + 0x108,
        DATA + 0x110,
    ]


@pytest.mark.parametrize("way", traced.WAYS)
def test_a_load_that_faults_ends_the_block_and_the_rest_is_found_later(tmp_path: Path, way: str) -> None:
    hole = DATA + 0x100 * PAGE_SIZE
    code = assemble(
        "aarch64",
        f"""
        mov x0, #{DATA}
        mov x1, #{hole}
        b 1f
    1:  str x0, [x0]
        ldr x2, [x1]
        ldr x3, [x2]
        svc #0
    """,
        tmp_path,
    )
    run = traced.bare("aarch64", code, way)
    assert run.tracer.run() == "fault"
    assert run.tracer.pc == CODE + 16
    assert run.seen() == [(CODE + 12, DATA, 8, 1)]
    run.space.map(hole, run.memory.allocate(), 1, READ | WRITE)
    run.space.write(hole, (DATA + 64).to_bytes(8, "little"))
    run.finish()
    assert run.seen() == [(CODE + 16, hole, 8, 0), (CODE + 20, DATA + 64, 8, 0)]


def test_remapped_pages_are_read_anew(tmp_path: Path) -> None:
    """The pointer behind [x0] is read from the page that is mapped when the block runs."""
    code = assemble("aarch64", f"mov x0, #{DATA}\nb 1f\n1: ldr x1, [x0]\nldr x2, [x1]\nsvc #0\nb 1b", tmp_path)
    run = traced.bare("aarch64", code)
    run.space.write(DATA, (DATA + 8).to_bytes(8, "little"))
    assert run.tracer.run() == "syscall"
    run.space.map(DATA, run.memory.allocate(), 1, READ | WRITE)
    run.space.write(DATA, (DATA + 16).to_bytes(8, "little"))
    assert run.tracer.run() == "syscall"
    assert [address for _, address, _, _ in run.seen()] == [DATA, DATA + 8, DATA, DATA + 16]


@pytest.mark.parametrize("way", traced.WAYS)
@pytest.mark.parametrize("seed", range(8))
def test_random_code_accesses_what_mem_hooks_say(seed: int, way: str) -> None:
    code = RandomCode(seed, DATA).code
    expected = traced.reference("aarch64", code)
    assert len(expected) > 20
    run = traced.bare("aarch64", code, way)
    run.finish()
    assert run.seen() == expected


@pytest.mark.parametrize("seed", range(8))
def test_random_code_accesses_the_same_when_it_is_stepped(seed: int) -> None:
    code = RandomCode(seed, DATA).code
    run = traced.bare("aarch64", code)
    run.finish(stepping=True)
    assert run.seen() == traced.reference("aarch64", code)


# One operation of every kind that slices have in host code. What they make of the numbers in x1/rcx and x2/rdx chooses
# a byte of the data.
OPERATIONS = {
    "aarch64": [
        f"{name} {register}3, {register}{first}, {register}{second}{third}"
        for register in "xw"
        for first, second in ((1, 2), (2, 1))
        for name, third in [
            *[(name, "") for name in ("add", "sub", "and", "orr", "eor", "bic", "orn", "eon", "mul")],
            *[(name, "") for name in ("lsl", "lsr", "asr", "ror")],
            *[(name, f", {register}1") for name in ("madd", "msub")],
        ]
    ]
    + [f"{name} x3, x{first}, x{second}" for name in ("umulh", "smulh") for first, second in ((1, 2), (2, 2))]
    + [f"{name} x3, w{first}, w{second}, x1" for name in ("umaddl", "smaddl") for first, second in ((1, 2), (2, 2))]
    + [
        f"{flags} {register}1, {register}2\ncsel {result}3, {result}1, {result}2, {condition}"
        for register, result in ("xx", "wx", "xw")
        for flags in ("cmp", "cmn", "tst")
        for condition in ("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
        if flags == "cmp" or condition not in ("hi", "ls")  # the host has no such condition of a sum
    ],
    "x86_64": [
        f"mov %{b}, %{r}\n{name}{size} %cl, %{r}"
        for name in ("shl", "shr", "sar", "ror")
        for size, b, r in (("l", "edx", "esi"), ("q", "rdx", "rsi"))
    ]
    + ["mov %rdx, %rsi\nimul %rcx, %rsi", "mov %edx, %esi\nimul %ecx, %esi", "mov %rdx, %rsi\nnot %rsi"]
    + [
        f"mov %rcx, %rsi\nmov %rcx, %rdi\n{flags} %{a}, %{b}\ncmov{condition} %rdx, %rsi"
        for a, b in (("rdx", "rdi"), ("edx", "edi"), ("dx", "di"), ("dl", "dil"))
        for flags in ("cmp", "add", "test")
        for condition in ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "l", "ge", "le", "g")
    ],
}
BLOCKS = {
    "aarch64": "b 771f\n771: {}\neor x3, x3, x3, lsr #32\nand x3, x3, #0xfff\nldrb w4, [x0, x3]\n",
    "x86_64": "jmp 771f\n771: {}\nmov %rsi, %rdi\nshr $32, %rdi\nxor %rdi, %rsi\nand $0xfff, %esi\n"
    "movzbl (%rbx,%rsi), %eax\n",
}
TOGETHER = 8  # operations in one program
NUMBERS = [0, 1, 31, 32, 63, 64, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0000_0000_0000, 0xFEDC_BA98_7654_3210, 2**64 - 3]


@pytest.mark.parametrize("isa", ISAS)
def test_host_code_finds_what_the_engine_accesses(isa: str, tmp_path: Path) -> None:
    """Of every block that an operation stands in, the tracer compares what code and interpreter find."""
    operations = list(enumerate(OPERATIONS[isa]))
    for start in range(0, len(operations), TOGETHER):
        source = f"mov x0, #{DATA}\n" if isa == "aarch64" else f"mov ${DATA}, %ebx\n"
        together = operations[start : start + TOGETHER]
        for number, operation in together:
            for first, second in zip(NUMBERS, NUMBERS[number % 5 :] + NUMBERS, strict=False):
                if isa == "aarch64":
                    source += f"ldr x1, ={first}\nldr x2, ={second}\n"
                else:
                    source += f"movabs ${first}, %rcx\nmovabs ${second}, %rdx\n"
                source += BLOCKS[isa].format(operation)
        end = "svc #0\n.ltorg" if isa == "aarch64" else "mov $60, %eax\nsyscall"
        code = assemble(isa, source + end, tmp_path)
        run = traced.bare(isa, code)
        run.finish()
        assert run.seen() == traced.reference(isa, code), together
        assert run.tracer.blocks_by_code >= len(together) * len(NUMBERS), together
