"""What it costs that somebody hears of retirement, against the same run in which nobody does.

For a program on each ISA and gear:
  nobody    the run that all others are held against
  path      a listener that counts branches
  records   branch records of 32 entries (LBR), which need the last ones alone
  1/10k     one that counts selections, an instruction of ten thousand
And perfemu record of units that sample, one instruction of 4096, against perfemu stat -e instructions: on zen5
ibs_op/cnt_ctl=1/u, on neoverse-n1 arm_spe_0// with all of its packets, on skylake and redwood-cove instructions:ppu,
which is PEBS. Likewise of Intel PT, which traces all, on skylake and on ideal. Branch records: perfemu record with -b
against the same without.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from workloads import ISAS, Workload, cpu_seconds, guest_program

from emulator._native import BranchRecords, Core, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from perfemu.counting import count
from perfemu.events.attributes import Sampling
from perfemu.events.branch_filters import ANY_BRANCH
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session

Listen = Callable[[Core, RetirementRecorder], None]
PERIOD = 10_000
OP_PERIOD = 4096
CACHES = str(Path(__file__).parent / "cores" / "caches.toml")
CORES = {"aarch64": ("ideal", CACHES, "neoverse-n1"), "x86_64": ("ideal", CACHES, "zen5")}
BRANCHES = {  # core -> ISA, what it is lent, event; recorded with and without the branches before each sample
    "neoverse-n1": ("aarch64", ("brbe",), "instructions:u"),
    "skylake": ("x86_64", (), "instructions:u"),
    "zen5": ("x86_64", (), "instructions:u"),
}
BRANCH_PERIOD, BRANCH_GOAL = 1_000_003, 1.03
UNITS = (  # core, ISA, event, and what it may cost
    ("zen5", "x86_64", "ibs_op/cnt_ctl=1/u", 1.05),
    ("neoverse-n1", "aarch64", "arm_spe_0/ts_enable=1,pa_enable=1,jitter=1/u", 1.05),
    ("skylake", "x86_64", "intel_pt//u", 1.15),
    ("ideal", "x86_64", "intel_pt//u", 1.40),
    ("skylake", "x86_64", "instructions:ppu", 1.05),  # PEBS, by its buffer
    ("redwood-cove", "x86_64", "instructions:ppu", 1.05),
)
MODES: dict[str, Listen] = {
    "nobody": lambda core, recorder: None,
    "path": lambda core, recorder: core.listen(recorder),
    "records": lambda core, recorder: core.listen(BranchRecords(32)),
    "1/10k": lambda core, recorder: core.select(recorder, 1 << Probe.INST_RETIRED, PERIOD),
}


def hear(workload: Workload, core: str, listen: Listen) -> None:
    machine = LinuxMachine(MachineConfig(workload.isa, core=load_core(core)))
    listen(machine.cpus[0].core, RetirementRecorder())
    with open(os.devnull, "wb") as nowhere:
        machine.start(Program(workload.argv[0], workload.argv, stdout=nowhere.fileno()))
        machine.run()


def sample(workload: Workload, core: str, event: str, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        units = ("pt",) if core == "ideal" else ()
        guest = Guest(workload.argv, core=core, units=units, stdout=nowhere.fileno())
        settings = Sampling(frequency_hz=None, period=OP_PERIOD)
        record(Session(guest), [event], settings, str(directory / "perf.data"))


def count_instructions(workload: Workload, core: str) -> None:
    with open(os.devnull, "wb") as nowhere:
        guest = Guest(workload.argv, core=core, units=("pt",) if core == "ideal" else (), stdout=nowhere.fileno())
        count(guest, ["instructions"])


def run_units(repeats: int) -> None:
    for core, isa, event, goal in UNITS:
        workload = guest_program("sort", isa, "600000")
        counted, sampled = [], []
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(repeats):
                counted.append(cpu_seconds(partial(count_instructions, workload, core)))
                sampled.append(cpu_seconds(partial(sample, workload, core, event, Path(directory))))
        ratio = median(sampled) / median(counted)
        unit = event.partition("/")[0]
        print(f"{isa:9}{workload.name:12}{unit:15}{median(counted):9.2f}{ratio:9.2f}   goal {goal:.2f}", flush=True)


def sample_branches(workload: Workload, core: str, path: Path, branches: int) -> None:
    _, units, event = BRANCHES[core]
    with open(os.devnull, "wb") as nowhere:
        guest = Guest(workload.argv, core=core, units=units, stdout=nowhere.fileno())
        record(Session(guest), [event], Sampling(frequency_hz=None, period=BRANCH_PERIOD, branches=branches), str(path))


def run_branches(repeats: int) -> None:
    for core, (isa, units, _) in BRANCHES.items():
        workload = guest_program("sort", isa, "600000")
        without, with_branches = [], []
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "perf.data"
            for _ in range(repeats):
                without.append(cpu_seconds(partial(sample_branches, workload, core, path, 0)))
                with_branches.append(cpu_seconds(partial(sample_branches, workload, core, path, ANY_BRANCH)))
        ratio, unit = median(with_branches) / median(without), f"record -b{''.join(units):>6}"
        print(
            f"{isa:9}{workload.name:12}{unit:15}{median(without):9.2f}{ratio:9.2f}   goal {BRANCH_GOAL:.2f}", flush=True
        )


def run(repeats: int, only: set[str]) -> None:
    print(f"{'':36}{'nobody':>9}{'path':>9}{'records':>9}{'1/10k':>9}   CPU seconds; ratios of nobody")
    for isa in ISAS:
        workload = guest_program("sort", isa, "600000")
        if only and workload.name not in only:
            continue
        for core in CORES[isa]:
            times: dict[str, list[float]] = {mode: [] for mode in MODES}
            for _ in range(repeats):
                for mode, listen in MODES.items():
                    times[mode].append(cpu_seconds(partial(hear, workload, core, listen)))
            medians = {mode: median(each) for mode, each in times.items()}
            ratios = "".join(f"{medians[mode] / medians['nobody']:9.2f}" for mode in MODES if mode != "nobody")
            print(f"{isa:9}{workload.name:12}{Path(core).stem:15}{medians['nobody']:9.2f}{ratios}", flush=True)
    if not only or "sort" in only:
        run_units(repeats)
        run_branches(repeats)
