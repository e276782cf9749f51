"""GuestOptions: the machine, what a guest sees of the host, and its limits, as Python and benchmark files say them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypedDict, cast

from emulator.linux.configuration import LinuxConfig
from emulator.linux.fast_forward import Until
from emulator.machine import MOST_CPUS, QUANTUM_CYCLES
from perfemu.environment import DEFAULT_ENVIRONMENT
from perfemu.namespace import make_namespace
from perfemu.quantities import memory_bytes, size_bytes, time_ns, user_ids
from perfemu.session import GuestSettings


class GuestOptions(TypedDict, total=False):
    """The machine, what the guest sees of the host, and what the run may use at most: as the command line's options."""

    core: str | os.PathLike[str] | None  # a name or a core file; None: the ISA's default
    core_changes: Iterable[str]  # as --set takes them: "l1d.size=64KiB"
    untimed: bool
    fast_forward: int | str  # instructions or "region", as --fast-forward and --warmup
    warmup: int | str
    vdso: bool
    cpus: int
    quantum: int  # cycles
    seed: int | None
    sysroot: str | os.PathLike[str] | None
    binds: Iterable[str]  # as --bind takes them: "data:/data:rw"
    isolate: bool
    writable_paths: Iterable[str | os.PathLike[str]]
    environment: Mapping[str, str] | None  # instead of the guest's small default
    cwd: str | os.PathLike[str] | None  # of the host; where the guest does not find it, it begins in /
    user: int | str  # whose the program is: 1000, "1000:100"
    # Limits; numbers are seconds or bytes.
    timeout: float | str  # of simulated time: 2.5, "100ms"
    max_instructions: int
    memory: int | str  # of the machine: 512 << 20, "512M"
    max_output: int | str  # to files and streams of the host
    max_tasks: int  # processes and threads at once


def guest_settings(argv: Sequence[str | os.PathLike[str]], guest: GuestOptions) -> GuestSettings:
    """TypeError names an option that there is not, ValueError a wrong value, UsageError what cannot be bound."""
    if isinstance(argv, str) or not argv:
        raise ValueError(f"argv={argv!r}: a sequence of the program and its arguments")
    unknown = guest.keys() - GuestOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: there is no such argument")
    binds, sysroot, cwd = guest.get("binds", ()), guest.get("sysroot"), guest.get("cwd")
    if isinstance(binds, str):
        raise ValueError(f"binds={binds!r}: a sequence of them")
    cpus, quantum = guest.get("cpus", 1), guest.get("quantum", QUANTUM_CYCLES)
    if not 1 <= cpus <= MOST_CPUS:
        raise ValueError(f"cpus={cpus}: 1 to {MOST_CPUS}")
    if quantum < 1:
        raise ValueError(f"quantum={quantum}: at least one cycle")
    writable = tuple(os.path.abspath(path) for path in guest.get("writable_paths", ()))
    space = make_namespace(
        None if sysroot is None else os.path.abspath(sysroot), binds, guest.get("isolate", False), writable
    )
    core, environment = guest.get("core"), guest.get("environment")
    settings = GuestSettings(
        argv=tuple(os.fspath(argument) for argument in argv),
        core=None if core is None else os.fspath(core),
        core_changes=tuple(guest.get("core_changes", ())),
        untimed=guest.get("untimed", False),
        linux=LinuxConfig(
            sysroot=space.sysroot,
            binds=space.binds,
            isolated=space.isolated,
            writable_paths=writable,
            vdso=guest.get("vdso", True),
        ),
        environment=DEFAULT_ENVIRONMENT if environment is None else tuple(environment.items()),
        cwd=space.guest_directory(os.path.abspath(cwd) if cwd is not None else os.getcwd()),
        cpus=cpus,
        quantum=quantum,
        schedule_seed=guest.get("seed"),
    )
    for name, (field, parse) in _QUANTITIES.items():
        if name not in guest:
            continue
        value = cast(Mapping[str, object], guest)[name]
        try:
            changes: dict[str, Any] = {field: parse(str(value))}
        except ValueError as problem:
            raise ValueError(f"{name}={value!r}: {problem}") from None
        if field in _LINUX_FIELDS:
            changes = {"linux": replace(settings.linux, **changes)}
        settings = replace(settings, **changes)
    return settings


def _instructions(text: str) -> int | Until:
    if text == Until.REGION.value:
        return Until.REGION
    if int(text) < 0:
        raise ValueError("a number of instructions")
    return int(text)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError("at least one")
    return int(text)


_LINUX_FIELDS = {field.name for field in fields(LinuxConfig)}
_QUANTITIES: dict[str, tuple[str, Callable[[str], object]]] = {  # to a field of GuestSettings or its `linux`, by what
    "timeout": ("most_ns", time_ns),
    "fast_forward": ("fast_forward", _instructions),
    "warmup": ("warmup", _instructions),
    "max_instructions": ("most_instructions", _positive),
    "memory": ("memory_bytes", memory_bytes),
    "max_output": ("most_output_bytes", size_bytes),
    "max_tasks": ("most_tasks", _positive),
    "user": ("user", user_ids),
}
