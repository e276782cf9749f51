"""Cores against machines: figures that were measured, and the tool that measures them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

import require
from emulator._native import simulate
from emulator.core_file.core_file import load_core
from tests.silicon import kernels, measure, model, programs, runs
from tests.unit.native.bare import assemble

# Cycles of an iteration, timed on a Zen 5 (EPYC, family 26) by the method of `make silicon` before these cores existed.
# The loops are written anew after their names. With [first, step, modulo] of each access that moves.
ZEN5 = {
    "add_chain": ("add rax, r8", [], 1.00),
    "multiply_chain": ("imul rax, r8", [], 2.98),
    "divide_chain_32": ("xor edx, edx; div r8d; or eax, r9d", [], 14.1),
    "pointer_chase": ("mov rax, [rax]", [], 4.0),
    "sum_of_integers": ("add rax, [rsi+rbx*8]; inc rbx", [(0x10000, 8, 0x2000)], 1.0),
    "fadd_chain": ("addsd xmm0, xmm8", [], 1.98),
    "dot_product": (
        "movsd xmm1, [rsi+rbx*8]; mulsd xmm1, [rdx+rbx*8]; addsd xmm0, xmm1; inc rbx",
        [(0x10000, 8, 0x2000), (0x14040, 8, 0x2000)],
        2.05,
    ),
    "copy_16": (
        "movups xmm0, [rsi+rbx]; movups [rdx+rbx], xmm0; add rbx, 16",
        [(0x10000, 16, 0x2000), (0x14040, 16, 0x2000)],
        1.02,
    ),
    "axpy": (
        "movupd xmm0, [rsi+rbx]; mulpd xmm0, xmm8; addpd xmm0, [rdx+rbx]; movupd [rdx+rbx], xmm0; add rbx, 16",
        [(0x10000, 16, 0x2000), (0x14040, 16, 0x2000), (0x14040, 16, 0x2000)],
        1.07,
    ),
}


@pytest.mark.parametrize("name", ZEN5)
def test_zen5_takes_what_was_measured(name: str, tmp_path: Path) -> None:
    body, addresses, measured = ZEN5[name]
    lines = ["b:", *body.split(";"), "dec rdi", "jnz b"]
    code = assemble("x86_64", "\n".join([".intel_syntax noprefix", *lines]), tmp_path)
    tables = dict(load_core("zen5").tables)
    few, many = (
        simulate("x86_64", tables, code, count, addresses=addresses or None)["cycles"] for count in (4000, 8000)
    )
    assert (many - few) / 4000 == pytest.approx(measured, rel=0.08)


# Zen 5, timed the same way: L1D 4.0, L2 14.0.
@pytest.mark.parametrize(("kib", "cycles"), [(8, 4.0), (32, 4.0), (64, 14.0), (256, 14.0)])
def test_zen5_chases_pointers_as_measured(kib: int, cycles: float) -> None:
    assert model.chase_cycles(dict(load_core("zen5").tables), kib << 10) == pytest.approx(cycles, rel=0.02)


def loop_cycles(core: str, names: Collection[str], folder: Path) -> dict[str, float]:
    """Of an iteration of each of these loops of loops.toml."""
    require.command("gcc", package="gcc")
    loops = measure.loops()
    codes = model.bodies(measure.build(loops, folder), len(loops))
    tables = dict(load_core(core).tables)
    chosen = [(loop, code) for loop, code in zip(loops, codes, strict=True) if loop.name in names]
    return {loop.name: model.cycles(tables, loop, code) for loop, code in chosen}


def kernel_cycles(core: str, names: Collection[str], folder: Path) -> dict[str, float]:
    """Of a repetition of each of these kernels."""
    require.command("gcc", package="gcc")
    if measure.host_core()[0] == "aarch64":
        pytest.skip("x86-64 programs need an x86-64 assembler")
    found = {}
    for kernel in kernels.kernels():
        if kernel.name in names:
            program = str(kernel.build(folder))
            work = runs.Workload(kernel.name, (program, "3000"), (program, "1000"))
            found[kernel.name] = programs.model_cycles(work, core)[0] / 2000 / kernel.times
    return found


def test_probes_say_what_is_in_the_core_file(tmp_path: Path) -> None:
    """emulator/cores/zen4.toml: FP_ADD and FP_MUL 3, MUL64 3, L1D 4 and 1 with an index; two of each in a row."""
    expected = {
        "fadd_latency": 6,
        "fmul_latency": 6,
        "imul_latency": 6,
        "load_latency": 8,
        "load_indexed_latency": 10,
    }
    assert loop_cycles("zen4", expected, tmp_path) == pytest.approx(expected, rel=0.01)


# The judged loops of loops.toml, timed by `make silicon` on a Granite Rapids (48 KiB of L1D, 64 of L1I, 2 MiB of L2).
REDWOOD_COVE = {
    "add_chain": 1.00,
    "add_independent_8": 1.50,
    "multiply_chain": 3.00,
    "divide_chain_32": 12.01,
    "pointer_chase": 5.00,
    "sum_of_integers": 1.32,
    "fadd_chain": 2.00,
    "dot_product": 2.00,
    "copy_16": 1.09,
    "axpy": 1.38,
    "crc_bit": 4.00,
    "sha_round_mix": 5.75,
    "xorshift": 6.00,
    "linear_congruence": 4.00,
    "horner": 12.01,
    "four_sums": 2.45,
    "fill_16": 1.09,
    "fill_8": 1.09,
    "byte_sum": 2.22,
    "byte_compare": 2.43,
    "histogram": 2.21,
    "maximum": 3.04,
    "absolute": 4.00,
    "binary_search_step": 3.00,
    "popcount_sum": 2.00,
    "hash_multiply": 5.00,
    "hash_fold": 5.00,
    "index_chain": 10.00,
    "list_sum": 5.00,
    "spill_reload": 1.17,
    "push_pop": 1.06,
    "int_to_float_sum": 4.16,
    "float_division": 4.00,
    "square_root_norm": 6.01,
    "complex_multiply": 7.24,
    "shuffle_add": 4.14,
    "vector_hash": 8.36,
    "widen_bytes": 1.41,
    "aes_stream": 3.03,
    "string_scan": 2.05,
    "predictable_branch": 1.50,
    "bit_reverse": 4.04,
    "gcd_step": 7.00,
    "big_addition": 2.28,
    "read_modify_write": 1.25,
}
# PUSH and POP are at addresses of another line there; INT_TO_FP merges into the old vector, which is not modelled.
ELSEWHERE = ("push_pop", "int_to_float_sum")


def test_redwood_cove_takes_what_was_measured(tmp_path: Path) -> None:
    assert {loop.name for loop in measure.loops() if loop.judged} == REDWOOD_COVE.keys()
    found = loop_cycles("redwood-cove", REDWOOD_COVE.keys() - set(ELSEWHERE), tmp_path)
    errors = [abs(cycles / REDWOOD_COVE[name] - 1) for name, cycles in found.items()]
    assert len(errors) == len(REDWOOD_COVE) - len(ELSEWHERE)
    assert max(errors) < 0.2
    assert sum(errors) / len(errors) < 0.035


def test_loops_are_timed_in_cycles(tmp_path: Path) -> None:
    """A chain of four additions takes four: the measure is by such a chain, so this holds on every host."""
    require.command("gcc", package="gcc")
    if measure.host_core()[0] == "aarch64":
        pytest.skip("x86-64 loops need an x86-64 host")
    chosen = [loop for loop in measure.loops() if loop.name == "add_latency"]
    program = measure.build(chosen, tmp_path)
    assert measure.cycles(program, 0) == pytest.approx(4, rel=0.2)


def test_programs_are_timed_in_cycles(tmp_path: Path) -> None:
    """What they do more for a greater argument. A busy host makes that slower by any factor, and never faster."""
    require.command("gcc", package="gcc")
    if measure.host_core()[0] == "aarch64":
        pytest.skip("x86-64 programs need an x86-64 host")
    timer = runs.build(tmp_path)
    one, four = (
        runs.host_cycles(timer, runs.Workload("sha256", (program, str(kib)), (program, "10")), rounds=40)
        for program in [str(programs.GUESTS / "sha256" / "x86_64.elf")]
        for kib in (110, 410)
    )
    instructions = 90_000 * 100  # of 100 KiB: 90 a byte; no machine executes eight in a cycle
    assert instructions / 8 < one < four
    assert 4 * instructions / 8 < four


def test_rank_correlation() -> None:
    assert programs.rank_correlation([(1, 10), (2, 20), (3, 30)]) == 1
    assert programs.rank_correlation([(1, 30), (2, 20), (3, 10)]) == -1
    assert programs.rank_correlation([(1, 10), (2, 30), (3, 20)]) == 0.5  # 1 - 6 * (1 + 1) / (3 * 8)


def test_kernels_say_what_is_in_the_core_file(tmp_path: Path) -> None:
    """emulator/cores/zen4.toml: a line's end costs a cycle, two branches a cycle, foreseen stores answer at once."""
    names = ("fetch_within_64_bytes", "fetch_across_64_bytes", "compare_and_branch", "forward")
    found = kernel_cycles("zen4", names, tmp_path)
    assert found["fetch_across_64_bytes"] - found["fetch_within_64_bytes"] == pytest.approx(1, abs=0.2)
    assert found["compare_and_branch"] == pytest.approx(0.5, abs=0.05)
    assert found["forward"] == pytest.approx(1, abs=0.05)


def test_kernels_say_what_redwood_cove_does(tmp_path: Path) -> None:
    """As timed there: 0.19, 1.00, 7.98, 0.75, 2.01, 0.73 and 1.99 cycles, forwarded 1.00, and 7.35 by no register."""
    expected = {
        "constants_added": 0.19,
        "constants_added_32": 1.0,
        "product_and_two_sums": 8.0,
        "load_and_add": 0.75,
        "indirect_jumps_64": 2.0,
        "jumps_64": 1.0,
        "jumps_1000": 2.0,
        "forward_load_by_itself": 1.0,
        "forward_without_register": 7.0,
    }
    assert kernel_cycles("redwood-cove", expected, tmp_path) == pytest.approx(expected, rel=0.05)


def test_every_judged_loop_is_apart_from_the_probes() -> None:
    loops = measure.loops()
    judged = {loop.body for loop in loops if loop.judged}
    assert len(judged) >= 30
    assert not judged & {loop.body for loop in loops if not loop.judged}


def test_a_wrong_core_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.silicon", "no-such-core"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
