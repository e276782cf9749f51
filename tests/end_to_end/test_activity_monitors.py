"""The Activity Monitors of a board: Debian's kernels find them, and scale load by them; programs are given none."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest

import debian_kernel
import require
from c_programs import build
from end_to_end.command import perfemu
from guests import DIRECTORY
from on_a_board import Board
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.guest import Guest

STEPS = DIRECTORY / "board_activity_monitors" / "steps.toml"  # 2 GHz and 500 MHz
MONITORS = "--set", "activity_monitors.version=v1p1"
IMAGE = DIRECTORY / "board_activity_monitors" / "virt.elf"
# A message without an end of line is complete when the next one comes
SCRIPT = """
dmesg | grep -o "Activity Monitors Unit (AMU)"
insmod /modules/cpufreq-dt.ko
echo behind > /dev/kmsg
dmesg | grep -o "AMU: .*"
cd /sys/devices/system/cpu/cpu0/cpufreq
cat scaling_driver cpuinfo_max_freq
"""


SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")


@pytest.mark.parametrize(("release", "cpus", "which"), [("", 1, "0"), pytest.param("trixie", 2, "0-1", marks=SLOW)])
def test_debians_kernels_use_them(release: str, cpus: int, which: str, tmp_path: Path) -> None:
    """For frequency invariance, once cpufreq tells them of a highest frequency: init_amu_fie_callback."""
    board = Board(
        release=release,
        cpus=cpus,
        options=(*MONITORS, "--dvfs", STEPS),
        parameters='dyndbg="file arch/arm64/kernel/topology.c +p"',
    )
    lines = board.run(SCRIPT, tmp_path, debian_kernel.modules("cpufreq-dt", release=release))
    assert lines == [
        "Activity Monitors Unit (AMU)",
        f"AMU: CPUs[{which}]: counters will be used for FIE.",
        "cpufreq-dt",
        "2000000",
    ]


@SLOW
def test_a_kernels_scheduler_scales_by_the_mean(tmp_path: Path) -> None:
    """amu_scale_freq_tick of Debian's kernel, whose ticks have a thousand laps of the profile.

    1 us at 2 GHz and 3 us at 500 MHz are 3,500 cycles in 4 us, in which the system counter has 250 ticks: 14 a tick. At
    the highest there are 32, so that the scale is 14 / 32 of 1024, 448, rounded down twice. All of it is the kernel's.
    """
    initrd = tmp_path / "initrd"
    script = "insmod /modules/cpufreq-dt.ko\ni=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n"
    initrd.write_bytes(debian_kernel.initramfs(script, *debian_kernel.modules("cpufreq-dt", release="trixie")))
    kernel_image = str(debian_kernel.kernel("trixie"))
    guest = Guest((kernel_image,), core="ideal", core_changes=MONITORS[1:], dvfs=STEPS, memory="1G", stdin=-1)
    request = BoardRequest("virt", initrd=str(initrd), command_line="console=ttyAMA0 quiet", guest_linux=True)
    session = BoardSession(guest, request, BytesIO(), lambda line: None)
    assert session.run().exit_status == 0
    assert session.linux is not None
    kernel = session.linux.kernel(session.hardware.cpus[0])
    assert kernel is not None
    offset = kernel.word(kernel.symbols["__per_cpu_offset"])

    def of_cpu_0(name: str) -> int:
        return kernel.word(kernel.symbols[name] + offset & (1 << 64) - 1)

    assert of_cpu_0("arch_max_freq_scale") == (62_500_000 << 20) // 2_000_000_000
    assert of_cpu_0("arch_freq_scale") in (447, 448)
    cycles, ticks = of_cpu_0("arch_core_cycles_prev"), of_cpu_0("arch_const_cycles_prev")
    assert ticks > 1_000_000
    assert abs(cycles - 14 * ticks) <= 3500  # a lap's


def test_pmu_show_has_their_registers() -> None:
    """Of all that the program has executed, by its derivation: 26 and 5,054 instructions, a cycle each; 621 branches.

    Its 5,080 cycles are 317 ticks of 16 ns and a half; it has waited for 1,000 more.
    """
    monitors = (*MONITORS, "--set", "activity_monitors.auxiliary=BR_RETIRED", "--core", "ideal", "--memory", "64M")
    done = perfemu("pmu", "show", "--board", "virt", "--semihosting", *monitors, "--registers", "AMEVCNTR*", IMAGE)
    shown = [line.split() for line in done.stdout.decode().splitlines() if line.startswith("  AMEVCNTR")]
    assert [(name, int(value, 16)) for name, value in shown] == [
        ("AMEVCNTR00_EL0", 5080),
        ("AMEVCNTR01_EL0", 317),
        ("AMEVCNTR02_EL0", 5080),
        ("AMEVCNTR10_EL0", 621),
    ]


PROGRAM = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf back;
static void undefined(int signal) { siglongjmp(back, signal); }
#define READ(register) __extension__({ unsigned long x; asm volatile("mrs %0, " register : "=r"(x)); x; })
int main(void) {
    int signal;
    sigaction(SIGILL, &(struct sigaction){.sa_handler = undefined}, NULL);
    if ((signal = sigsetjmp(back, 1))) printf("user enable: signal %d\n", signal);
    else printf("user enable: %lu\n", READ("s3_3_c13_c2_3"));
    if ((signal = sigsetjmp(back, 1))) printf("cycles: signal %d\n", signal);
    else printf("cycles: %lu\n", READ("s3_3_c13_c4_0"));
    return 0;
}
"""


@pytest.mark.parametrize(("options", "enable"), [(MONITORS, "0"), ((), "signal 4")])
def test_linux_gives_programs_none(options: tuple[str, ...], enable: str, tmp_path: Path) -> None:
    """AMUSERENR_EL0 is always readable, and is 0: the read of a counter is SIGILL. Without monitors, each is."""
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    program = build(source, "aarch64", tmp_path / "program", "-w")
    done = perfemu("run", *options, program)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"user enable: {enable}\ncycles: signal 4\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("activity_monitors.version=v2",), "--set activity_monitors.version=v2: unknown; there is v1, v1p1"),
        (("activity_monitors.auxiliary=NOPE",), "activity_monitors.auxiliary: no event 'NOPE'"),
        (
            ("activity_monitors.version=v1", "pmu.aarch64=loongarch"),
            "they count a PMUv3's events, and the PMU is loongarch",
        ),
    ],
)
def test_what_is_wrong_is_one_line(options: tuple[str, ...], problem: str) -> None:
    changes = [word for option in options for word in ("--set", option)]
    done = perfemu("run", "--board", "virt", *changes, IMAGE)
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 129
    assert problem in line


def test_a_core_without_aarch64_has_none() -> None:
    done = perfemu("run", "--core", "zen5", *MONITORS, require.debian_tree("amd64", "busybox-static") / "bin/busybox")
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 129
    assert "activity_monitors: only for cores that execute aarch64" in line
