"""Debian's unmodified amd64 kernel as a guest of our hypervisor, twice on one CPU: the unmodified perf in it counts and
samples, by counters that it shares with a host, what it does alone, and so what the modelled Linux does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import debian_kernel
import require
from guests import guest
from perfemu.initramfs import program
from perfemu.virtual_machines import VirtualMachines
from tests.interop import test_perf_on_a_pc as on_a_pc
from tests.interop.test_perf_on_a_pc import AMD, INTEL, PROGRAMS, Maker, script

GUESTS = 2
SLICE_US = 500


@pytest.mark.skipif("KERNELS" not in os.environ, reason="takes minutes: make kernels")
@pytest.mark.parametrize(("maker", "counters"), [(INTEL, 2), (AMD, 4)], ids=["intel", "amd"])
def test_each_kernels_perf_counts_as_alone(maker: Maker, counters: int, tmp_path: Path) -> None:
    files = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf"), "usr/bin/perf")
    files += [program(name, guest(name, "x86_64").path.read_bytes()) for name in PROGRAMS]
    initrd = tmp_path / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(script(maker), *files, architecture="amd64"))
    machines = VirtualMachines(
        [debian_kernel.kernel("", "amd64")] * GUESTS, board="pc", core=maker.core(tmp_path), memory="2G", initrd=initrd,
        command_line="console=ttyS0 quiet", guest_counters=counters, slice_us=SLICE_US, timeout="60s",
    )  # fmt: skip
    in_user_mode = [machines.count("instructions:uG", guest=number) for number in range(GUESTS)]
    machines.run()
    for machine, counted in zip(machines.guests, in_user_mode, strict=True):
        said = machine.console.decode().splitlines()
        (told,) = [line.split()[-1] for line in said if "... generic registers:" in line]
        assert int(told) == counters
        for name in PROGRAMS:
            on_a_pc.test_user_mode_counts_are_the_same(name, said, maker, tmp_path)
        on_a_pc.test_every_sample_is_at_the_same_instruction(said, maker, tmp_path)
        on_a_pc.test_each_sample_is_an_nmi(said, maker, tmp_path)
        of_programs = sum(on_a_pc.retired(name, maker, tmp_path)["instructions:u"] or 0 for name in PROGRAMS)
        assert counted.count() > of_programs  # the host counts all of it
