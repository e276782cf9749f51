"""One random image on a board, in a process of its own: what became of it, watched and not."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from emulator.cpu import Level
from emulator.probes import Probe
from emulator.x86_64_system import SystemRegister
from fuzz.boards.image import MEMORY_BYTES, RandomImage
from fuzz.boards.pc.image import RandomPcImage
from fuzz.child import in_child, peak_bytes, resident_bytes
from fuzz.host_watch import HostWatch, tree
from fuzz.run import make_directory
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession
from perfemu.counters import enable_groups
from perfemu.errors import PerfemuError
from perfemu.events.attributes import Sampling, stat_attr
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import Scope

BASE = Path(tempfile.gettempdir())
MOST_INSTRUCTIONS = 20_000
TIMEOUT = "30ms"
MOST_HOST_BYTES = 700 << 20  # a core that models time has 400 before anything executes
DISK_BYTES = 64 << 10
COUNTED = ("instructions:u", "instructions:k", "branches", "cycles")
NOT_FOLLOWED = (Probe.BR_TAKEN, Probe.BR_COND_TAKEN)  # unless somebody says before that he wants to know


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What is drawn from for a board. `registers`, `system`: numbers for Core's read_register, read_kernel_register."""

    make: Callable[[int], bytes]  # an image from its seed
    cores: Sequence[str]
    cpus: Sequence[int]
    consoles: Sequence[str]
    counted: Sequence[str]
    sampled: Sequence[str]
    registers: range
    system: Sequence[int] = ()
    gics: Sequence[int | None] = (None,)
    semihosting: Sequence[bool] = (False,)


FUZZED = {
    "virt": Fuzzed(
        lambda seed: RandomImage(seed).bytes(),
        ("ideal", "ideal", "ideal", "cortex-a55", "neoverse-n1"),
        (1, 1, 2, 4),
        ("pl011", "pl011", "virtio"),
        (*COUNTED, "ld_retired:k", "exc_taken"),
        ("instructions", "cycles", "branches", "ld_retired:k", "st_retired"),
        range(33),
        gics=(3, 3, 3, 2),
        semihosting=(True, False),
    ),
    "pc": Fuzzed(
        lambda seed: RandomPcImage(seed).bytes(),
        ("ideal", "ideal", "zen5", "skylake"),
        (1, 1, 2),
        ("com1", "com1", "virtio"),
        COUNTED,
        COUNTED,
        range(18),
        tuple(SystemRegister),
    ),
}


@dataclass(slots=True)
class BoardOutcome:
    problem: str = ""
    instructions: int = 0
    exceptions: int = 0
    kinds: list[str] = field(default_factory=list)  # of messages, by their first words
    ending: str = ""
    digest: str = ""  # of all that the guest did, and of what was recorded of it
    host_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Setting:
    """What the seed says of the machine, and of who watches."""

    core: str
    cpus: int
    quantum: int
    gic: int | None
    console: str
    test_device: bool
    semihosting: bool
    disks: int
    period: int
    event: str
    callchains: bool

    @classmethod
    def of(cls, board: str, seed: int) -> Setting:
        fuzzed, choose = FUZZED[board], Random(f"board {seed}").choice
        return cls(
            choose(fuzzed.cores), choose(fuzzed.cpus), choose((1000, 1000, 77, 20_000)), choose(fuzzed.gics),
            choose(fuzzed.consoles), choose((True, False)), choose(fuzzed.semihosting), choose((0, 1, 2)),
            choose((1, 7, 30, 97, 1000)), choose(fuzzed.sampled), choose((True, False)),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """One run."""

    ending: str
    state: str  # hash of registers, memory, time and counts
    output: bytes
    said: tuple[str, ...]
    instructions: int
    exceptions: int


def run_seed(board: str, seed: int, base: Path = BASE) -> BoardOutcome:
    root = base / f"fuzz-{board}-{seed:08}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    try:
        inside = make_directory(root)
        before = tree(root / "outside")
        outcome = in_child(BoardOutcome, lambda outcome: _observe(board, seed, inside, outcome))
        if not outcome.problem and tree(root / "outside") != before:
            outcome.problem = "files have changed outside of where the guest may write"
        return outcome
    finally:
        shutil.rmtree(root, ignore_errors=True)


def make_session(board: str, seed: int, inside: Path, output: io.BytesIO, said: list[str]) -> BoardSession:
    """Of the image, on a board with all that it can have."""
    setting = Setting.of(board, seed)
    image = inside / "image"
    if not image.exists():
        image.write_bytes(FUZZED[board].make(seed))
        for number in range(setting.disks):
            (inside / f"disk{number}").write_bytes(bytes(DISK_BYTES))
    (inside / "share").mkdir(exist_ok=True)
    guest = Guest(
        (str(image),), core=setting.core, cpus=setting.cpus, quantum=setting.quantum, memory=MEMORY_BYTES,
        max_instructions=MOST_INSTRUCTIONS, timeout=TIMEOUT, binds=[f"{inside / 'share'}:share:rw"],
        stdin=os.open(os.devnull, os.O_RDONLY), stdout=1, max_output="1M",
    )  # fmt: skip
    request = BoardRequest(
        board, command_line="random", disks=[f"{inside}/disk{number}" for number in range(setting.disks)],
        console=setting.console, test_device=setting.test_device, semihosting=setting.semihosting, gic=setting.gic,
    )  # fmt: skip
    return BoardSession(guest, request, output, said.append)


def _observe(board: str, seed: int, inside: Path, outcome: BoardOutcome) -> str:
    setting = Setting.of(board, seed)
    alone_output, said = io.BytesIO(), list[str]()
    session = make_session(board, seed, inside, alone_output, said)
    watch = HostWatch(str(inside))
    watch.begin()
    before = resident_bytes()
    alone = _run(FUZZED[board], session, alone_output, said, session.run)
    outcome.instructions, outcome.exceptions, outcome.ending = alone.instructions, alone.exceptions, _kind(alone.ending)
    outcome.kinds = sorted({" ".join(line.split()[:3]) for line in said})
    del session
    gc.collect()  # the host's memory is for one machine at a time
    watched_output, watched_said = io.BytesIO(), list[str]()
    session = make_session(board, seed, inside, watched_output, watched_said)
    data = io.BytesIO()
    if seed % 2:
        counts = _count(session, FUZZED[board].counted)
        watched = _run(FUZZED[board], session, watched_output, watched_said, session.run)
        problem = counts()
        if problem:
            return problem
    else:
        sampling = Sampling(None, setting.period, callchains=setting.callchains)
        scope = Scope(cpus=tuple(range(setting.cpus)))
        sample = partial(record, session, [setting.event], sampling, data, scope=scope, command_line=("perfemu",))
        watched = _run(FUZZED[board], session, watched_output, watched_said, sample)
    outcome.digest = hashlib.sha256(repr((alone, data.getvalue())).encode()).hexdigest()
    outcome.host_bytes = peak_bytes() - before
    if watch.touched:
        return f"the host was touched: {watch.touched}"
    if alone != watched:
        return f"who watches changes it:\n{alone}\n{watched}"
    if outcome.host_bytes > MOST_HOST_BYTES:
        return f"{outcome.host_bytes >> 20} MiB of the host's memory"
    return ""


def _kind(ending: str) -> str:
    """Without what differs between images that end alike."""
    of_image = ending.partition("/image: ")[2] or ending
    return "a limit" if " at 0x" in of_image else of_image


def _run(fuzzed: Fuzzed, session: BoardSession, output: io.BytesIO, said: list[str], run: Callable[[], object]) -> Seen:
    """What ended it may be a refusal, in one line."""
    try:
        run()
        ending = "ended"
    except PerfemuError as refusal:
        ending = str(refusal)
        assert "\n" not in ending, ending
    cores = [cpu.core for cpu in session.hardware.cpus]
    memory = session.hardware.memory
    digest = hashlib.sha256(memory.view(0, memory.size_bytes >> 12))
    probes = [probe for probe in Probe if probe not in NOT_FOLLOWED]
    for core in cores:
        totals = [core.total(probe, level) for probe in probes for level in Level]
        registers = [core.read_register(number) for number in fuzzed.registers]
        system = [core.read_kernel_register(number) for number in fuzzed.system]
        digest.update(repr((core.cycles, totals, registers, system)).encode())
    return Seen(
        ending if ending != "ended" else (said or [""])[-1][:40], digest.hexdigest(), output.getvalue(), tuple(said),
        sum(core.total(Probe.INST_RETIRED) for core in cores), sum(core.total(Probe.EXC_TAKEN) for core in cores),
    )  # fmt: skip


def _count(session: BoardSession, events: Sequence[str]) -> Callable[[], str]:
    """Events on each CPU; afterwards, whether the instructions are the core's own."""
    specs = session.parse(events)
    opened = [
        [session.open(stat_attr(spec, system_wide=True), cpu.number, system_wide=True) for spec in specs]
        for cpu in session.hardware.cpus
    ]
    for of_cpu in opened:
        enable_groups(of_cpu)

    def check() -> str:
        for cpu, of_cpu in zip(session.hardware.cpus, opened, strict=True):
            counted = [event.read_values().value for event in of_cpu[:2]]
            total = [cpu.core.total(Probe.INST_RETIRED, level) for level in (Level.USER, Level.KERNEL)]
            if counted != total:
                return f"CPU {cpu.number}: counted {counted}, and the core says {total}"
        return ""

    return check


def show_board(board: str, seed: int, base: Path) -> int:
    """One image: what becomes of it. The image itself stays, for a disassembler."""
    image = base / f"fuzz-{board}-{seed:08}.bin"
    image.write_bytes(FUZZED[board].make(seed))
    outcome = run_seed(board, seed, base)
    print(f"{Setting.of(board, seed)}\n{image}\n{outcome.problem or outcome}")
    return 1 if outcome.problem else 0
