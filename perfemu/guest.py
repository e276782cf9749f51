"""Guest: a program and the machine that runs it: all that a user may say of them, on the command line or in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

from emulator.core_file.core_file import CoreFile
from emulator.frequency import FrequencyError, TimeBase
from emulator.linux.configuration import LinuxConfig
from emulator.linux.fast_forward import Skipped
from emulator.linux.process.program import Program
from emulator.machine import QUANTUM_CYCLES, MachineConfig
from perfemu.cores import with_pmu
from perfemu.environment import DEFAULT_ENVIRONMENT
from perfemu.errors import PerfemuError, UsageError
from perfemu.guest_options import OPTIONS
from perfemu.namespace import Namespace, make_namespace


@dataclass(frozen=True, slots=True)
class Guest:
    """What is wrong by itself raises ValueError here; what does not fit the host, UsageError where it is run."""

    argv: Sequence[str | os.PathLike[str]]  # the program and its arguments
    _: KW_ONLY
    core: str | os.PathLike[str] | None = None  # a name or a core file; None: the ISA's default
    core_changes: Sequence[str] = ()  # as --set takes them: "l1d.size=64KiB"
    pmu: str | None = None  # a model of pmu/models/ instead of the core's
    units: Sequence[str] = ()  # lent to the core, which has not got them
    untimed: bool = False  # the core's identity, at one cycle an instruction
    fast_forward: int | str = 0  # instructions or "region"
    warmup: int | str = 0  # ... behind those
    sysroot: str | os.PathLike[str] | None = None
    binds: Sequence[str] = ()  # as --bind takes them: "data:/data:rw"
    isolate: bool = False
    writable_paths: Sequence[str | os.PathLike[str]] = ()
    environment: Mapping[str, str] | None = None  # instead of the guest's small default
    cwd: str | os.PathLike[str] | None = None  # of the host; where the guest does not find it, it begins in /
    cpus: int = 1
    quantum: int = QUANTUM_CYCLES  # cycles
    seed: int | None = None  # draws the interleaving
    date: str | None = None  # of its clock at the start, UTC
    dvfs: str | os.PathLike[str] | None = None  # a frequency profile
    vdso: bool = True
    timeout: float | str | None = None  # of simulated time, in seconds, or "100ms"
    max_instructions: int | None = None
    max_tasks: int | None = None  # processes and threads at once
    max_output: int | str | None = None  # bytes, or "1G", to files and streams of the host
    user: int | str | None = None  # whose the program is: 1000, "1000:100"
    memory: int | str | None = None  # of the machine: 512 << 20, "512M"
    counters: int | None = None  # of the measuring PMU; None: all that the architecture can have
    stdin: int = 0  # host descriptors; -1 is a closed one
    stdout: int = 1
    stderr: int = 2
    interactive: bool = False  # emulator.linux.process.program.Program.interactive
    _values: Mapping[tuple[type, str], object] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not self.argv:
            raise ValueError(f"argv={self.argv!r}: a sequence of the program and its arguments")
        values = {}
        for name, row in OPTIONS.items():
            given = getattr(self, name)
            if name in REPEATED and isinstance(given, str):
                raise ValueError(f"{name}={given!r}: a sequence of them")
            value = None if given is None else row.value(name, given)
            if value is not None and row.becomes is not None:
                values[row.becomes] = value
        object.__setattr__(self, "_values", values)  # once, since `now` is another time the next time

    @staticmethod
    def of(guest: Guest | Sequence[str | os.PathLike[str]], **options: Any) -> Guest:
        """A program and its arguments are a guest, too. `options` are fields, which come first."""
        made = guest if isinstance(guest, Guest) else Guest(guest)
        return replace(made, **options) if options else made

    def changes(self, isa: str) -> tuple[str, ...]:
        """All that is changed of the core, as --set takes it."""
        return with_pmu(self.core_changes, self.pmu, isa)

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments, as text."""
        return tuple(os.fspath(argument) for argument in self.argv)

    @property
    def core_name(self) -> str | None:
        """Or its file's name."""
        return None if self.core is None else os.fspath(self.core)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """The guest's environment."""
        return DEFAULT_ENVIRONMENT if self.environment is None else tuple(self.environment.items())

    def space(self) -> Namespace:
        """What of the host is where. Raises UsageError."""
        if self.sysroot is not None and not os.path.isdir(self.sysroot):
            raise UsageError(f"--sysroot {os.fspath(self.sysroot)}: no such directory")
        for path in self.writable_paths:
            if not os.path.exists(path):
                raise UsageError(f"--rw {os.fspath(path)}: no such file or directory")
        sysroot = None if self.sysroot is None else os.path.abspath(self.sysroot)
        return make_namespace(sysroot, self.binds, self.isolate, [os.fspath(path) for path in self.writable_paths])

    def machine(self, isa: str, core: CoreFile) -> MachineConfig:
        """Of the machine that runs it. Raises UsageError."""
        config = MachineConfig(isa=isa, core=core, **self._values_of(MachineConfig))
        try:
            if config.frequencies is not None:
                TimeBase(config.frequencies, core.frequency_hz)
        except FrequencyError as problem:
            raise UsageError(f"--dvfs {self.dvfs}: {problem}") from None
        return config

    def linux(self, space: Namespace) -> LinuxConfig:
        """Of that machine's Linux."""
        return LinuxConfig(
            sysroot=space.sysroot,
            binds=space.binds,
            isolated=space.isolated,
            writable_paths=tuple(os.path.abspath(path) for path in self.writable_paths),
            **self._values_of(LinuxConfig),
        )

    @property
    def changed_clock(self) -> str:
        """For titles, behind the core's."""
        return "" if self.dvfs is None else f", dvfs {os.path.basename(self.dvfs)}"

    def skipped(self) -> Skipped:
        """What is not modelled."""
        return Skipped(**self._values_of(Skipped))

    def directory(self, space: Namespace) -> str:
        """In which it begins, as it is called in `space`."""
        return space.guest_directory(_current_directory() if self.cwd is None else os.path.abspath(self.cwd))

    def program(self, path: str, directory: str) -> Program:
        """The first program, which is `path` in `directory` to the guest."""
        return Program(
            path=path,
            argv=self.command,
            environment=self.variables,
            cwd=directory,
            stdin=self.stdin,
            stdout=self.stdout,
            stderr=self.stderr,
            interactive=self.interactive,
        )

    def _values_of(self, configuration: type) -> dict[str, Any]:
        return {name: value for (owner, name), value in self._values.items() if owner is configuration}


REPEATED = tuple(field.name for field in fields(Guest) if field.default == ())  # options that may be given often


def _current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise PerfemuError("the current directory has been removed: cd to one that exists") from None
