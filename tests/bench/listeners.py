"""What it costs that somebody hears of retirement, against the same run in which nobody does.

For a program on each ISA and gear:
  nobody    the run that all others are held against
  path      a listener that counts branches
  1/10k     one that counts selections, an instruction of ten thousand
And on zen5 perfemu record -e ibs_op/cnt_ctl=1/u -c 4096 against perfemu stat -e instructions: `ibs`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from workloads import ISAS, Workload, cpu_seconds, guest_program

from emulator._native import Core, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from perfemu.counting import count
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session

Listen = Callable[[Core, RetirementRecorder], None]
PERIOD = 10_000
OP_PERIOD = 4096
CACHES = str(Path(__file__).parent / "cores" / "caches.toml")
CORES = {"aarch64": ("ideal", CACHES, "neoverse-n1"), "x86_64": ("ideal", CACHES, "zen5")}
MODES: dict[str, Listen] = {
    "nobody": lambda core, recorder: None,
    "path": lambda core, recorder: core.listen(recorder),
    "1/10k": lambda core, recorder: core.select(recorder, 1 << Probe.INST_RETIRED, PERIOD),
}


def hear(workload: Workload, core: str, listen: Listen) -> None:
    machine = LinuxMachine(MachineConfig(workload.isa, core=load_core(core)))
    listen(machine.cpus[0].core, RetirementRecorder())
    with open(os.devnull, "wb") as nowhere:
        machine.start(Program(workload.argv[0], workload.argv, stdout=nowhere.fileno()))
        machine.run()


def sample_ops(workload: Workload, core: str, directory: Path) -> None:
    with open(os.devnull, "wb") as nowhere:
        guest = Guest(workload.argv, core=core, stdout=nowhere.fileno())
        settings = Sampling(frequency_hz=None, period=OP_PERIOD)
        record(Session(guest), ["ibs_op/cnt_ctl=1/u"], str(directory / "perf.data"), settings)


def count_instructions(workload: Workload, core: str) -> None:
    with open(os.devnull, "wb") as nowhere:
        count(Guest(workload.argv, core=core, stdout=nowhere.fileno()), ["instructions"])


def run_ibs(repeats: int) -> None:
    workload = guest_program("sort", "x86_64", "600000")
    counted, sampled = [], []
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(repeats):
            counted.append(cpu_seconds(partial(count_instructions, workload, "zen5")))
            sampled.append(cpu_seconds(partial(sample_ops, workload, "zen5", Path(directory))))
    ratio = median(sampled) / median(counted)
    print(
        f"{workload.isa:9}{workload.name:12}{'zen5, ibs':15}{median(counted):9.2f}{ratio:9.2f}   goal 1.05", flush=True
    )


def run(repeats: int, only: set[str]) -> None:
    print(f"{'':36}{'nobody':>9}{'path':>9}{'1/10k':>9}   CPU seconds; ratios of nobody")
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
        run_ibs(repeats)
