"""Arm SPE on the board virt: Debian's kernel finds it, its own driver programs it, and Debian's perf reads it there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import debian_kernel
import require
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU, perfemu
from guests import guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu.initramfs import directory, program

SORT = guest("sort", "aarch64").path
INTERVAL = 1024
TIMEOUT_S = 500
SCRIPT = f"""
insmod /modules/arm_spe_pmu.ko
dmesg | grep arm_spe_pmu
export LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib:/lib
cd /tmp
perf=/usr/bin/perf
$perf record -q -m 8,8 -o user -e arm_spe_0/ts_enable=1,pa_enable=1/u -c {INTERVAL} /sort 2000
$perf record -q -o both -e arm_spe_0/ts_enable=1/ -c {INTERVAL} /sort 2000
for file in user both; do
    $perf script -i $file --itrace=i1i -F ip,sym,dso 2> /dev/null | sed "s/^/$file:/"
done
grep arm_spe /proc/interrupts
"""


def boot(release: str, folder: Path) -> list[str]:
    perf = debian_kernel.with_libraries(require.debian_tree("arm64", "linux-perf", release=release), "usr/bin/perf")
    folders = sorted(
        {"modules"} | {str(parent) for entry in perf for parent in Path(entry.path).parents} - {".", "bin"}
    )
    more = [
        *map(directory, folders),
        *debian_kernel.modules("arm_spe_pmu", release=release),
        *perf,
        program("sort", SORT.read_bytes()),
    ]
    initrd = folder / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(SCRIPT, *more))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "virt", "--core", "ideal", "--unit", "spe", "--set", "spe.version=v1"]
        + ["--memory", "1G", "--initrd", initrd, "--append", "console=ttyAMA0 quiet kpti=off"]
        + [debian_kernel.kernel(release)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def precise_samples(folder: Path) -> list[int]:
    """The instructions that make the last of so many, in a run of the same program without that kernel."""
    arguments = ("record", "-q", "-e", "instructions:upp", "-c", str(INTERVAL), "-o", "precise", SORT, "2000")
    assert perfemu(*arguments, cwd=folder).returncode == 0
    with open_perf_data(str(folder / "precise")) as file:
        return [file.decode_sample(record, 0).ip for record in file.records() if record.type == RecordType.SAMPLE]


RELEASES = [
    "",
    pytest.param(TRIXIE, marks=pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="make kernels")),
]


@pytest.mark.parametrize("release", RELEASES)
def test_its_kernels_own_driver_samples_the_instructions_that_it_should(release: str, tmp_path: Path) -> None:
    """Of EL0: each 1024th of the program's, as it is counted elsewhere; with the kernel's, others, too."""
    lines = boot(release, tmp_path)
    assert any(re.search(r"arm_spe_pmu spe-pmu: probed.* for CPUs 0 ", line) for line in lines), lines
    sampled = [int(line.split()[1], 16) for line in lines if line.startswith("user:")]
    assert len(sampled) > 256
    assert sampled == precise_samples(tmp_path)
    both = [line for line in lines if line.startswith("both:")]
    assert any("[kernel.kallsyms]" in line for line in both)
    assert any("sort" in line for line in both)
    (interrupts,) = [line for line in lines if "arm_spe" in line and "GICv3" in line]
    found = re.search(r": +(\d+) +GICv3 +21 Level", interrupts)
    assert found is not None
    assert int(found[1]) > 0  # a buffer of eight pages has room for 512 records, and interrupts at half
