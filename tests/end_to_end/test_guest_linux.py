"""--guest-linux: what a kernel that executes knows of its tasks, read from outside; it says the same itself."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random

import pytest

import debian_kernel
from c_programs import build
from debian import TRIXIE
from end_to_end.command import PERFEMU, perfemu
from perfemu import boards
from perfemu.board_request import BoardRequest
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.guest_linux.kernel import GuestCpu, GuestKernel
from perfemu.guest_linux.mappings import GuestMapping, Mappings
from perfemu.guest_linux.memory import Ram, Unreadable
from perfemu.guest_linux.system import GuestLinux
from perfemu.guest_linux.tasks import GuestTask, Tasks
from perfemu.initramfs import program
from perfemu.recording import record
from perfemu.scope import scope_of_cpus
from perfemu.symbols.finder import build_id_of

MEMORY = "512M"
PERIOD, KERNEL_PERIOD = 10_007, 100_003
BROKEN_LOOKS = 10
LOOPS = {"in_itself": 2_000_000, "in_child": 1_000_000, "in_thread": 1_500_000}  # of two instructions each
WHO = {"in_itself": "worker", "in_child": "a child", "in_thread": "a thread"}


@dataclass(frozen=True)
class System:
    """What is booted."""

    board: str
    isa: str
    architecture: str  # as Debian names it
    release: str
    command_line: str
    module: str  # which is tested when it is loaded
    hashes: str  # what it does then, and for long

    @property
    def label(self) -> str:
        return "[" + self.module.replace("-", "_") + "]"

    @property
    def kernel(self) -> Path:
        return debian_kernel.vmlinux(self.release, self.architecture)

    @property
    def script(self) -> str:
        lines = "echo == sh $$ $(cat /proc/$$/comm)\n/bin/worker\nsha256sum /bin/worker"
        return f"insmod /modules/{self.module}.ko\n{lines}"


ARM = System("virt", "aarch64", "arm64", "", "console=ttyAMA0", "sha512-arm64", "sha512_block_data_order")
PC = System("pc", "x86_64", "amd64", "", "console=ttyS0 pti=on", "streebog_generic", "streebog_xlps")
SYSTEMS = {
    "bookworm": ARM,
    "trixie": replace(ARM, release=TRIXIE),
    "pc_bookworm": PC,
    "pc_trixie": replace(PC, release=TRIXIE, command_line="console=ttyS0"),  # whose programs have its own tables
}
SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")


class Output(BytesIO):
    """The serial port. `on_line` is called when the guest has written a line, before it goes on."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        super().__init__()
        self._on_line = on_line
        self._line = bytearray()

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._line += data
        if data.endswith(b"\n"):
            self._on_line(self._line.decode().strip())
            self._line.clear()
        return super().write(data)


class Broken(Ram):
    """Some of what is read has other bits."""

    def __init__(self, ram: Ram, seed: int) -> None:
        super().__init__(ram.view, ram.base)
        self._random = Random(seed)

    def word(self, physical: int) -> int:
        return super().word(physical) ^ (self._random.random() < 0.005) << self._random.randrange(64)

    def read(self, physical: int, size: int) -> bytes:
        data = bytearray(super().read(physical, size))
        if size and self._random.random() < 0.02:
            data[self._random.randrange(size)] = self._random.randrange(256)
        return bytes(data)


def look_at_what_makes_no_sense(kernel: GuestKernel, task: GuestTask, cpu: GuestCpu, seed: int) -> None:
    """It comes to an end, whatever is there, and says that something is Unreadable, at most."""
    broken = copy(kernel)
    broken.ram = Broken(kernel.ram, seed)
    broken.tables = replace(kernel.tables, ram=broken.ram)
    try:
        Tasks(broken).current(cpu)
        root = broken.value(task.address, "task_struct", "fs") + broken.member("fs_struct", "root").offset
        assert len(list(Mappings(broken).all(task.mm, root))) < 1000
    except Unreadable:
        pass


@dataclass(frozen=True)
class Run:
    """What one boot gave."""

    system: System
    data: Path
    root: Path  # which has /bin/worker
    lines: list[str]  # of the console
    mappings: list[GuestMapping]  # of the worker, as they were read from outside when it began to print them
    told: list[str]  # to the user
    symfs: tuple[str | Path, ...] = ()  # what tells readers where the worker is


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Of a system: with /bin/worker; beside it an initrd that has it, too."""

    @cache
    def root(name: str) -> Path:
        system = SYSTEMS[name]
        root = tmp_path_factory.mktemp(name) / "root"
        (root / "bin").mkdir(parents=True)
        source = Path(__file__).with_name("guest_linux.c")
        worker = build(source, system.isa, root / "bin" / "worker", "-Wl,--build-id")
        release, architecture = system.release, system.architecture
        modules = debian_kernel.modules(system.module, release=release, architecture=architecture)
        files = program("bin/worker", worker.read_bytes()), *modules
        initrd = debian_kernel.initramfs(system.script, *files, architecture=architecture)
        root.with_name("initrd").write_bytes(initrd)
        return root

    return root


@pytest.fixture(scope="module")
def recordings(roots: Callable[[str], Path]) -> Callable[[str], Run]:
    """Those of trixie are told where the guest's programs are, so that nobody has to tell readers."""

    @cache
    def recording(name: str) -> Run:
        root, system = roots(name), SYSTEMS[name]
        if system.release:
            return recorded(root, system, str(root))
        return replace(recorded(root, system), symfs=("--symfs", root))

    return recording


@pytest.fixture(
    params=["bookworm", pytest.param("trixie", marks=SLOW), "pc_bookworm", pytest.param("pc_trixie", marks=SLOW)]
)
def run(request: pytest.FixtureRequest, recordings: Callable[[str], Run]) -> Run:
    return recordings(request.param)


def recorded(root: Path, system: System, guest_root: str | None = None) -> Run:
    data = root.with_name("perf.data")
    mappings: list[GuestMapping] = []
    lines: list[str] = []
    told: list[str] = []

    class Looking(GuestLinux):
        """At the first sample of the worker behind what it has printed, it looks at more than samples need."""

        def task(self, cpu: GuestCpu) -> GuestTask | None:
            task = super().task(cpu)
            if task is not None and task.comm == "worker" and "== maps" in lines and not mappings:
                mappings.extend(self.mappings(task))
                kernel = self.kernel(cpu)
                assert kernel is not None
                for seed in range(BROKEN_LOOKS):
                    look_at_what_makes_no_sense(kernel, task, cpu, seed)
            return task

    with Path(os.devnull).open("rb") as nothing, pytest.MonkeyPatch.context() as patch:
        patch.setattr(boards, "GuestLinux", Looking)
        guest = Guest([str(system.kernel)], core="ideal", memory=MEMORY, stdin=nothing.fileno())
        options = BoardRequest(
            system.board, str(root.with_name("initrd")), system.command_line, guest_linux=True, guest_root=guest_root
        )
        session = boards.BoardSession(guest, options, Output(lines.append), told.append)
        ending = record(
            session, ["instructions:u", f"instructions/period={KERNEL_PERIOD}/k"], Sampling(period=PERIOD), str(data),
            command_line=("perfemu", "record"), scope=scope_of_cpus(True, None, 1), build_id_of=build_id_of,
        ).ending  # fmt: skip
    assert ending is not None
    assert ending.exit_status == 0
    return Run(system, data, root, lines, mappings, told)


def maps_line(mapping: GuestMapping) -> str:
    """As fs/proc/task_mmu.c writes it."""
    letters = "".join(letter if mapping.protection & bit else "-" for letter, bit in (("r", 1), ("w", 2), ("x", 4)))
    file = mapping.file
    where = "00:00 0" if file is None else f"{file.major:02x}:{file.minor:02x} {file.inode}"
    shared = "s" if mapping.is_shared else "p"
    head = f"{mapping.start:08x}-{mapping.end:08x} {letters}{shared} {mapping.offset:08x} {where} "
    return (head.ljust(73) + mapping.path).rstrip()


def printed_maps(run: Run) -> list[str]:
    start = run.lines.index("== maps") + 1
    return run.lines[start : run.lines.index("==", start)]


def test_mappings_are_those_that_the_guest_sees(run: Run) -> None:
    assert [maps_line(mapping) for mapping in run.mappings] == printed_maps(run)
    paths = {mapping.path for mapping in run.mappings}
    assert {"/bin/worker", "[heap]", "[stack]", "[vvar]", "[vdso]", "/mnt/directory/code", "/tmp/shared"} <= paths
    assert {"/tmp/of the dead (deleted)", "/memfd:memory (deleted)"} <= paths


def samples(run: Run, level: str, *command: str | Path) -> Counter[tuple[str, ...]]:
    """Of (name, process or thread, file, symbol), how many there are at that level."""
    done = subprocess.run(
        [*command, "-i", run.data, "-F", "comm,pid,tid,event,ip,sym,dso"],
        capture_output=True, text=True, check=True, cwd=run.root,
    )  # fmt: skip
    found: Counter[tuple[str, ...]] = Counter()
    for line in done.stdout.splitlines():
        row = re.match(r" *(.+?) +(\d+)/(\d+) +instructions.*[/:]([uk]): +[0-9a-f]+ (\S+) \((.*)\)", line)
        if row and row[4] == level:
            comm, pid, tid, _, symbol, dso = row.groups()
            found[comm, "process" if pid == tid else "thread", dso.removeprefix(str(run.root)), symbol] += 1
    return found


def expected(symbol: str) -> tuple[str, str, str, str]:
    return WHO[symbol], "thread" if symbol == "in_thread" else "process", "/bin/worker", symbol


@pytest.mark.parametrize("reader", ["perfemu", "perf"])
def test_samples_are_of_processes_and_their_symbols(reader: str, run: Run) -> None:
    command = ["perf"] if reader == "perf" else [str(PERFEMU)]
    found = samples(run, "u", *command, "script", *run.symfs)
    for symbol, loops in LOOPS.items():
        assert abs(found[expected(symbol)] - 2 * loops / PERIOD) <= 1
    assert not [row for row in found if row[3] in LOOPS and row != expected(row[3])]


def test_nothing_is_unresolved(run: Run) -> None:
    """Each sample is of a task with a name and of a file; and nothing had to be left out."""
    found = samples(run, "u", PERFEMU, "script", *run.symfs)
    assert run.told == []
    kernels = {row[3] for row in found if row[2] == "[kernel.kallsyms]"}
    assert kernels <= ({"entry_SYSCALL_64"} if run.system.board == "pc" else set())  # an overflow by SYSCALL itself
    assert {row[2] for row in found} <= {"/bin/worker", "/bin/busybox", "[vdso]", "[kernel.kallsyms]"}
    assert {row[0] for row in found} >= {"worker", "a child", "a thread", "init", "sha256sum"}


def test_modules_have_their_symbols(run: Run) -> None:
    """A crypto module's self tests hash for long; they are the work of a thread of the kernel's."""
    found = samples(run, "k", PERFEMU, "script")
    assert found["cryptomgr_test", "process", run.system.label, run.system.hashes] > 5
    assert sum(found[row] for row in found if row[2].startswith("[kernel.kallsyms]")) > 5000


def test_perf_names_modules(run: Run) -> None:
    """It looks for symbols when the first sample of the kernel comes, and knows no module then."""
    found = samples(run, "k", "perf", "script")
    assert sum(found[row] for row in found if row[2] == run.system.label) > 5


def test_files_of_the_host_are_not_taken_for_the_guests(run: Run, tmp_path: Path) -> None:
    """By their build ids, which are read in the guest's memory."""
    done = perfemu("report", "-i", run.data, "--sort", "dso,symbol")
    assert (b"in_itself" in done.stdout) == (not run.symfs)
    listed = subprocess.run(["perf", "buildid-list", "-i", run.data], capture_output=True, text=True, check=True).stdout
    worker = build_id_of(str(run.root / "bin" / "worker")).hex()
    assert f"{worker} {'' if run.symfs else run.root}/bin/worker" in listed.splitlines()


@dataclass(frozen=True)
class Trace:
    """Lines of the console, and of perfemu trace."""

    name: str
    console: list[str]
    told: list[str]


@pytest.fixture(
    scope="module", params=["bookworm", *(pytest.param(name, marks=SLOW) for name in ("pc_bookworm", "pc_trixie"))]
)
def traced(request: pytest.FixtureRequest, roots: Callable[[str], Path]) -> Trace:
    root, system = roots(request.param), SYSTEMS[request.param]
    done = perfemu(
        "trace", "--board", system.board, "--guest-linux", "--core", "ideal", "--memory", MEMORY,
        "--cmdline", system.command_line, "--initrd", root.with_name("initrd"), system.kernel,
        timeout_s=300,
    )  # fmt: skip
    assert done.returncode == 0
    return Trace(request.param, done.stdout.decode().splitlines(), done.stderr.decode().splitlines())


def test_watching_changes_nothing(recordings: Callable[[str], Run], traced: Trace) -> None:
    """The kernel's messages have its time in microseconds, to the cycle nearly: who samples, and who stops at each call
    and at its end, see the same run."""
    assert len(traced.console) > 200
    assert [line.strip() for line in traced.console] == recordings(traced.name).lines


# Of the worker's calls, in this order. What the C library does besides is between them; which calls it takes for mkdir
# and for a thread, and where a mapping is, is the instruction set's.
CALLS = [
    "MKDIR",
    r"mount\(0x[0-9a-f, x]+\) += 0",
    r'openat\(AT_FDCWD, "/tmp/of the dead", O_RDWR\|O_CREAT, 0700\) += 4',
    r"mmap\(NULL, 8192, PROT_READ\|PROT_EXEC, MAP_PRIVATE, 4, 0x1000\) += PLACE",
    r'memfd_create\("memory", 0\) += 6',
    r'read\(7, "00400000-.{23}"\.\.\., 65536\) += \d+',
    r'write\(1, "== maps\\n", 8\) += 8',
    "THREAD",
    r"clone\(child_stack=NULL, .*\|SIGCHLD, .*\) += \d+",
    r"wait4\(-1,  <unfinished \.\.\.>",
    r"<\.\.\. wait4 resumed>NULL, 0, NULL\) += \d+",
    r"exit_group\(0\) += \?",
    r"\+\+\+ exited with 0 \+\+\+",
]
OF_ISA = {
    "aarch64": {
        "MKDIR": r'mkdirat\(AT_FDCWD, "/mnt", 0700\) += 0',
        "PLACE": "0xffff[0-9a-f]{8}",
        "THREAD": r"clone\(.*flags=CLONE_VM\|.*parent_tid=\[(\d+)\].*\) += \1",
    },
    "x86_64": {
        "MKDIR": r'mkdir\("/mnt", 0700\) += 0',
        "PLACE": "0x7f[0-9a-f]{10}",
        "THREAD": r"clone3\(\{flags=CLONE_VM\|.*\}, 88\) += \d+",
    },
}


def expected_calls(isa: str) -> list[str]:
    expected = CALLS
    for name, pattern in OF_ISA[isa].items():
        expected = [each.replace(name, pattern) for each in expected]
    return expected


def test_system_calls_are_those_of_the_program(traced: Trace) -> None:
    lines = [re.match(r"(\S.*)/(\d+) +(\d+\.\d{9}) (.*)", line) for line in traced.told]
    assert all(lines)
    told = [match.groups() for match in lines if match]
    times = [(float(time)) for _, _, time, text in told if "resumed" not in text]
    assert times == sorted(times)
    calls_of_worker = expected_calls(SYSTEMS[traced.name].isa)
    worker = next(tid for _, tid, _, text in told if re.fullmatch(calls_of_worker[0], text))
    calls = iter(text for _, tid, _, text in told if tid == worker)
    for expected_call in calls_of_worker:
        assert any(re.fullmatch(expected_call, text) for text in calls), expected_call
    others = {(comm, text.split("(")[0]) for comm, tid, _, text in told if tid != worker}
    assert {("a thread", "exit"), ("a child", "exit_group"), ("worker", "prctl"), ("init", "execve")} <= others
    executed = [text for comm, _, _, text in told if text.startswith("execve(") and text.endswith("= 0")]
    assert any('execve("/bin/worker", ["/bin/worker"]' in text for text in executed)
    assert any('prctl(PR_SET_NAME, "a child")' in text for _, _, _, text in told)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "trace --board: --guest-linux shows"),
        (("--guest-linux", "-y"), "trace -y: is of programs"),
        (("--guest-linux", "-e", "signal=none"), "trace -e signal=: is of programs"),
        (("--guest-root", "/nowhere"), "--guest-root /nowhere: is no directory"),
        (("--guest-linux",), "is no image of Linux"),
    ],
)
def test_what_is_refused(options: tuple[str, ...], says: str) -> None:
    done = perfemu("trace", "--board", "virt", *options, __file__)
    assert done.returncode != 0
    assert says in done.stderr.decode()


def test_guest_linux_is_of_boards() -> None:
    for command in ("record", "trace"):
        assert b"--guest-linux: is a board's" in perfemu(command, "--guest-linux", "/bin/true").stderr
