"""One random program, run in a process of its own: what became of it, and whether that is as it should be."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emulator.linux.process.task import Task
from emulator.linux.syscalls.table import Syscall
from fuzz.child import in_child, peak_bytes, resident_bytes
from fuzz.host_watch import HostWatch, tree
from fuzz.program import RandomProgram, rows_of
from perfemu.guest import Guest
from perfemu.session import Session

CALLS = 120  # of a program, besides those that prepare it
MEMORY_BYTES = 64 << 20  # of the machine
FILE_BYTES = 32 << 20  # of files that it keeps
MOST_HOST_BYTES = 400 << 20  # of the emulator beyond what it has at its start: both, the engines', Python's
MOST_TASKS = 12
TIMEOUT = "3ms"
MOST_INSTRUCTIONS = 40_000
CORES = {
    "aarch64": ("ideal", "ideal", "ideal", "cortex-a55", "neoverse-n1"),
    "x86_64": ("ideal", "ideal", "ideal", "zen5", "skylake", "redwood-cove"),
}
BASE = Path(tempfile.gettempdir())


@dataclass(slots=True)
class Outcome:
    """What a program's process reports. `problem` is empty where all is well."""

    problem: str = ""
    status: int = -1
    stopped: str | None = None
    calls: int = 0
    tasks: int = 1
    said: list[str] = field(default_factory=list)  # messages
    kinds: list[int] = field(default_factory=list)  # numbers of the calls that succeeded at least once
    digest: str = ""  # of all that the guest did and was told, with the times
    host_bytes: int = 0
    seconds: float = 0.0  # of CPU time


Finish = Callable[[], str]
"""What is found to be wrong when a program has ended."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What programs do. `option` of this command asks for it; `watch` looks at what a session does with them."""

    option: str
    program: type[RandomProgram]
    rows: Callable[[str], list[Syscall]]
    watch: Callable[[Session], Finish]


ANY_CALLS = Kind("", RandomProgram, rows_of, lambda session: lambda: "")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the seed says of the machine."""

    core: str
    cpus: int
    quantum: int
    schedule_seed: int | None

    @classmethod
    def of(cls, isa: str, seed: int) -> Machine:
        rng = random.Random(f"machine {isa} {seed}")
        quantum = rng.choice((1000, 1000, 77, 20_000))
        return cls(rng.choice(CORES[isa]), rng.choice((1, 1, 2, 4)), quantum, rng.choice((None, None, seed)))


def make_directory(root: Path) -> Path:
    """`root/inside`, where a guest may write, with links that lead out of it to `root/outside`."""
    inside, outside = root / "inside", root / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("untouched")
    (outside / "secret").chmod(0o644)
    (inside / "file").write_text("content " * 1000)
    (inside / "file2").write_text("#!/nowhere\n")
    (inside / "script").write_text("#!./program\n")
    (inside / "script").chmod(0o755)
    (inside / "directory" / "y").mkdir(parents=True)
    (inside / "link").symlink_to("file")
    (inside / "loop").symlink_to("loop")
    (inside / "out").symlink_to("../outside")
    (inside / "escape").symlink_to(str(outside / "secret"))
    return inside


def make_program(isa: str, seed: int, inside: Path, null: int, kind: Kind = ANY_CALLS) -> Guest:
    """Write it into the directory; how it is to be run there, on `null`, a descriptor of /dev/null."""
    path = inside / "program"
    path.write_bytes(kind.program(isa, seed, CALLS, str(inside), str(path)).elf())
    path.chmod(0o755)
    machine = Machine.of(isa, seed)
    return Guest(
        (str(path),), core=machine.core, cwd=str(inside), stdin=null, stdout=null, stderr=null,
        cpus=machine.cpus, quantum=machine.quantum, seed=machine.schedule_seed,
        memory=MEMORY_BYTES, max_tasks=MOST_TASKS, max_instructions=MOST_INSTRUCTIONS, timeout=TIMEOUT,
    )  # fmt: skip


def run_seed(isa: str, seed: int, base: Path = BASE, kind: Kind = ANY_CALLS) -> Outcome:
    """In a child, with directories of its own, which are gone afterwards. Their name is one that a guest may see."""
    root = base / f"fuzz-{isa}-{seed:08}"
    _remove(root)
    root.mkdir(parents=True)
    try:
        inside = make_directory(root)
        before = tree(root / "outside")
        outcome = in_child(Outcome, lambda outcome: run_program(isa, seed, inside, outcome, kind))
        if not outcome.problem:
            if tree(root / "outside") != before:
                outcome.problem = "files have changed outside of where the guest may write"
            elif sorted(os.listdir(root)) != ["inside", "outside"]:
                outcome.problem = f"there is {os.listdir(root)} beside the guest's directory"
        return outcome
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    """Also what a guest has made unreadable."""
    for directory, _, _ in os.walk(root):
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)
    shutil.rmtree(root, ignore_errors=True)


def run_program(isa: str, seed: int, inside: Path, outcome: Outcome, kind: Kind = ANY_CALLS) -> str:
    """Run it here, and note what it does; what is wrong with that, or nothing."""
    session = Session(make_program(isa, seed, inside, os.open(os.devnull, os.O_RDWR), kind))
    finish = kind.watch(session)
    kernel = session.machine.kernel
    said = outcome.said
    kernel.messages = said.append
    digest = hashlib.sha256()
    succeeded: set[int] = set()

    def entered(task: Task, number: int, arguments: tuple[int, ...]) -> None:
        outcome.calls += 1
        digest.update(f"{task.cpu.core.cycles} {task.cpu.number} {task.tid} {number} {arguments}\n".encode())

    def left(task: Task, number: int, result: int) -> None:
        if result >= 0:
            succeeded.add(number)
        digest.update(f"{task.cpu.core.cycles} {task.tid} {number} {result}\n".encode())

    def forked(parent: Task, child: Task) -> None:
        outcome.tasks += 1

    tracepoints = kernel.tracepoints
    tracepoints.sys_enter.subscribe(entered)
    tracepoints.sys_exit.subscribe(left)
    tracepoints.task_fork.subscribe(forked)
    budget = kernel.file_tree.superblock.budget
    budget.limit_bytes = min(budget.limit_bytes, FILE_BYTES)
    watch = HostWatch(str(inside))
    watch.begin()
    before = resident_bytes()
    ending = session.run()
    outcome.status, outcome.stopped, outcome.kinds = ending.wait_status, ending.stopped, sorted(succeeded)
    outcome.host_bytes = peak_bytes() - before
    outcome.digest = digest.hexdigest()
    if watch.touched:
        return f"the host was touched: {watch.touched}"
    if bugs := [message for message in said if "bug of perfemu" in message]:
        return f"messages: {bugs}"
    if len(kernel.tasks) > MOST_TASKS + 1:  # and init
        return f"{len(kernel.tasks)} tasks"
    if outcome.host_bytes > MOST_HOST_BYTES:
        return f"{outcome.host_bytes >> 20} MiB of the host's memory"
    return finish()
