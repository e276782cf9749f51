"""PerfProgram: a random program that uses perf_event_open, its ioctls, mappings and reads, ptrace and bpf, in threads.

Objects have fixed descriptors: each that is made takes the place of another (dup3), so that structures may name them.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz import contents, layout
from fuzz.arguments import Memory
from fuzz.perf import structures
from fuzz.perf.bpf_programs import MAP_TYPES, MAPS, RandomBpf
from fuzz.perf.structures import (
    BUFFER_BYTES,
    COMMANDS,
    CONTEXT_BYTES,
    COUNT,
    EVENTS,
    FEW,
    LINKS,
    MAPPED,
    OBSERVING,
    PROGRAMS,
    RAW_NAMES,
    STEP,
    TYPES,
    Buffers,
)
from fuzz.program import BPF, RandomProgram, words
from perfcore.abi.bpf import Cmd, MapType
from perfcore.abi.ioctl import PerfIoctl
from unit.bpf.programs import bpf_attr

_BPF_PROGRAMS, _BPF_BYTES = 20, 0x400  # so many, each in so many bytes
_KEYS = layout.BUFFERS + 0x1400
_OUTPUT_AT = _KEYS + 0x100
_VALUES = layout.BUFFERS + 0x1800
_TEXTS = layout.BUFFERS + 0x1000
_ATTRS, _ATTR_BYTES = 100, 0x100  # unions and attributes, each of a call
_DATA_BYTES = _ATTRS * _ATTR_BYTES + _BPF_PROGRAMS * _BPF_BYTES
_ATTRS_AT = layout.CODE + layout.CODE_BYTES - _DATA_BYTES  # behind the code, where calls that write seldom do
_PROGRAMS_AT = _ATTRS_AT + _ATTRS * _ATTR_BYTES
_THREAD = 0x0005_0F00  # CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
_MADE = {
    Cmd.MAP_CREATE: (MAPS, COUNT), Cmd.PROG_LOAD: (PROGRAMS, COUNT), Cmd.BTF_LOAD: (TYPES, FEW),
    Cmd.MAP_GET_FD_BY_ID: (MAPS, COUNT), Cmd.PROG_GET_FD_BY_ID: (PROGRAMS, COUNT), Cmd.BTF_GET_FD_BY_ID: (TYPES, FEW),
    Cmd.LINK_GET_FD_BY_ID: (LINKS, FEW), Cmd.RAW_TRACEPOINT_OPEN: (LINKS, FEW), Cmd.LINK_CREATE: (LINKS, FEW),
}  # fmt: skip
_NO_FD = (1 << 64) - 1
_PTRACE = (0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 12, 13, 16, 16, 17, 24, 31, 0x4200, 0x4201, 0x4202, 0x4204, 0x4205, 0x4206,
           0x4206, 0x4207, 0x4208, 0x4209, 0x420A, 0x420E)  # fmt: skip
_PIDS = (0, 1000, 1000, 1001, 1001, 1002, 1003, 1, _NO_FD)


class PerfProgram(RandomProgram):
    """The program of an ISA and a seed."""

    def _begin(self) -> None:
        self._by_name["bpf"] = BPF
        self._attrs = 0
        self._data = bytearray(_DATA_BYTES)
        self._recent = EVENTS  # the descriptor that was mapped last
        super()._begin()
        rng = self._rng
        self._buffers = self._write_buffers()
        for slot in range(COUNT):
            self._bpf(Cmd.MAP_CREATE, bpf_attr(Cmd.MAP_CREATE, structures.map_attr(slot)), slot)
        for slot in range(rng.choice((0, 3, COUNT))):
            self._bpf(Cmd.PROG_LOAD, bpf_attr(Cmd.PROG_LOAD, structures.load_attr(self._buffers, slot)), slot)
        for slot in range(rng.choice((2, 5, COUNT))):
            self._open_event(slot)
            if rng.randrange(3):
                length = 0x1000 * (1 + (1 << rng.randrange(4)))
                self._call("mmap", self._mapped(EVENTS + slot), length, rng.choice((1, 3, 3)), 1, EVENTS + slot, 0)
            if rng.randrange(2):
                program = structures.fitting_program(rng, EVENTS + slot)
                self._call("ioctl", EVENTS + slot, int(PerfIoctl.SET_BPF), program)
        self._give_output()
        for _ in range(rng.randrange(3)):
            name = rng.choice(self._buffers.names)
            fields = {"name": name, "prog_fd": structures.fitting_program(rng, EVENTS + 3)}
            self._bpf(Cmd.RAW_TRACEPOINT_OPEN, bpf_attr(Cmd.RAW_TRACEPOINT_OPEN, fields))

    def _end(self) -> None:
        """Of a thread alone: the others go on."""
        self._call("exit", self._rng.randrange(256))

    def _write_buffers(self) -> Buffers:
        rng = self._rng
        programs = []
        for number in range(_BPF_PROGRAMS):
            type = OBSERVING[number % len(OBSERVING)]
            data = RandomBpf(rng, CONTEXT_BYTES[type]).data()
            address = _PROGRAMS_AT + _BPF_BYTES * number
            self._put_data(address, data)
            programs.append((address, len(data) // 8, int(type)))
        names, at = [], _TEXTS
        for text in (*RAW_NAMES, b"GPL"):
            self._put(at, text + b"\0")
            names.append(at)
            at += len(text) + 1
        types = structures.btf(rng)
        self._put(at, types)
        self._put(_KEYS, bytes(64))
        self._put(_OUTPUT_AT, (EVENTS + rng.choice((structures.OUTPUT, rng.randrange(COUNT)))).to_bytes(8, "little"))
        return Buffers(tuple(programs), tuple(names[:-1]), names[-1], (at, len(types)), _KEYS, _VALUES)

    def _add(self, row: object) -> None:
        rng = self._rng
        if rng.random() < 0.06:
            self._clone()
            return
        rng.choice(_ACTIONS)(self)

    def _clone(self) -> None:
        flags = self._rng.choice((_THREAD, _THREAD, _THREAD, 17, contents.clone_flags(self._rng)))
        self._call("clone", flags, 0, 0, 0, 0)

    # ---- what it does

    def _keep(self, place: Memory, first: int, slot: int) -> None:
        """Give the result of the call before its descriptor, and let the other one go."""
        self._call("dup3", place, first + slot, 0o2000000 if self._rng.randrange(2) else 0)
        self._call("close", place)

    def _placed(self, attr: bytes) -> int:
        """Where `attr` lies; later ones share those of the first."""
        address = _ATTRS_AT + _ATTR_BYTES * (self._attrs % _ATTRS)
        self._attrs += 1
        if self._attrs <= _ATTRS:
            self._put_data(address, attr)
        return address

    def _put_data(self, address: int, content: bytes) -> None:
        self._data[address - _ATTRS_AT : address - _ATTRS_AT + len(content)] = content

    def _assemble(self) -> bytes:
        code = super()._assemble()
        assert len(code) <= layout.CODE_BYTES - _DATA_BYTES, f"{len(code)} bytes of code"
        return code.ljust(layout.CODE_BYTES - _DATA_BYTES, b"\0") + self._data

    def _bpf(self, command: Cmd, attr: bytes, slot: int | None = None) -> None:
        rng = self._rng
        address, size = self._placed(attr), rng.choice((0, 8, 40, 72, 4096, 5000)) if rng.random() < 0.05 else len(attr)
        if command not in _MADE:
            self._call("bpf", int(command), address, size)
            return
        first, count = _MADE[command]
        place = self._call("bpf", int(command), address, size, kind="other")
        self._keep(place, first, rng.randrange(count) if slot is None else slot)

    def _random_bpf(self) -> None:
        command = self._rng.choice(COMMANDS)
        self._bpf(command, structures.random_bpf_attr(command, self._buffers, self._rng))

    def _open_event(self, slot: int | None = None) -> None:
        rng = self._rng
        slot = rng.randrange(COUNT) if slot is None else slot
        attr = structures.perf_attr(self.isa, rng, slot)
        places = (0, -1), (0, -1), (0, -1), (0, 0), (-1, 0), (-1, 0), (-1, 1), (1001, -1), (rng.choice(_PIDS), -1)
        pid, cpu = (-1, 0) if slot == structures.OUTPUT else rng.choice(places)
        group = rng.choice((-1, -1, -1, structures.event_fd(rng)))
        flags = rng.choice((0, 0, 8, 8, 8, 0, 0, 1, 2, 4, contents.number(rng)))
        address = self._placed(attr)
        place = self._call("perf_event_open", address, pid & _NO_FD, cpu & _NO_FD, group & _NO_FD, flags, kind="other")
        self._keep(place, EVENTS, slot)

    def _give_output(self) -> None:
        """The event to which programs write into their array."""
        fields = {"map_fd": MAPS + MAP_TYPES.index(MapType.PERF_EVENT_ARRAY), "key": _KEYS, "value": _OUTPUT_AT}
        self._bpf(Cmd.MAP_UPDATE_ELEM, bpf_attr(Cmd.MAP_UPDATE_ELEM, fields))

    def _ioctl(self) -> None:
        rng = self._rng
        request = rng.choice((*PerfIoctl, PerfIoctl.SET_BPF, PerfIoctl.SET_BPF, PerfIoctl.ENABLE))
        event = structures.event_fd(rng)
        if request in (PerfIoctl.SET_OUTPUT, PerfIoctl.SET_BPF):
            argument = rng.choice((structures.event_fd, structures.program_fd, structures.any_fd))(rng)
            if request == PerfIoctl.SET_BPF and rng.randrange(4):
                argument = structures.fitting_program(rng, event)
        elif request in (PerfIoctl.PERIOD, PerfIoctl.ID, PerfIoctl.QUERY_BPF, PerfIoctl.SET_FILTER):
            argument = rng.choice((_VALUES, _KEYS, *self._buffers.names[:2], contents.pointer(rng)))
        elif request == PerfIoctl.MODIFY_ATTRIBUTES:
            argument = self._placed(structures.perf_attr(self.isa, rng, event - EVENTS))
        else:
            argument = rng.choice((0, 1, 1, 2, contents.number(rng)))
        written: list[tuple[int, int]] = []
        if request == PerfIoctl.PERIOD:
            written = [(_VALUES, rng.choice((0, 1, 100, 5000, contents.number(rng))))]
        elif request == PerfIoctl.QUERY_BPF:
            written = [(_VALUES, rng.choice((0, 1, 3, 64, 65)))]
        self._call("ioctl", event, int(request), argument, written=written)

    def _map(self) -> None:
        rng = self._rng
        descriptor = rng.choice((structures.event_fd, structures.event_fd, structures.map_fd))(rng)
        length = rng.choice((0x1000, 0x2000, 0x2000, 0x3000, 0x5000, BUFFER_BYTES))
        offset, kind = 0, 0x11
        if rng.random() < 0.2:
            length = rng.choice((0, 0x4000, contents.number(rng)))
            offset = rng.choice((0x1000, 0x2000, 0x3000, contents.number(rng) & -0x1000))
            kind = rng.choice((0x11, 0x12, 0x13))
        self._call("mmap", self._mapped(descriptor), length, rng.choice((1, 3, 3, 3, 7, 0)), kind, descriptor, offset)
        self._recent = descriptor

    def _mapped(self, descriptor: int) -> int:
        return MAPPED + STEP * descriptor

    def _change_mapping(self) -> None:
        rng = self._rng
        address = self._mapped(
            rng.choice((self._recent, self._recent, structures.event_fd(rng), structures.map_fd(rng)))
        )
        at = address + 0x1000 * rng.choice((0, 0, 0, 1, 2))
        length = rng.choice((0x1000, 0x1000, 0x2000, 0x3000, BUFFER_BYTES))
        match rng.choice(("munmap", "mprotect", "mprotect", "mremap", "madvise", "msync")):
            case "munmap":
                self._call("munmap", at, length)
            case "mprotect":
                self._call("mprotect", at, length, rng.choice((0, 1, 3, 3, 5, 7)))
            case "mremap":
                self._call("mremap", at, length, rng.choice((0x1000, 0x4000, length)), rng.choice((0, 1)), 0)
            case "madvise":
                self._call("madvise", at, length, rng.choice((4, 8, 9, 10, 11, 16)))
            case "msync":
                self._call("msync", at, length, 4)

    def _write_mapping(self) -> None:
        """By a system call, which fails where a store would end the program: positions, lengths and the user page."""
        rng = self._rng
        descriptor = rng.choice((self._recent, self._recent, structures.event_fd(rng), structures.map_fd(rng)))
        at = self._mapped(descriptor) + rng.choice(
            (0, 0, 0x1000, 0x2000, 0x408, 0x410, 0x420, 0x430, 8 * rng.randrange(64))
        )
        self._call("prlimit64", 0, 7, 0, at)
        self._call("clock_gettime", 1, at)

    def _read(self) -> None:
        rng = self._rng
        size = rng.choice((0, 8, 16, 24, 40, 64, 256, 4096))
        self._call("read", structures.any_fd(rng), rng.choice((_VALUES, contents.pointer(rng))), size)

    def _poll(self) -> None:
        rng = self._rng
        polled = b"".join(
            structures.any_fd(rng).to_bytes(4, "little") + (rng.choice((1, 5, 0xFFFF))).to_bytes(4, "little")
            for _ in range(2)
        )
        self._call("ppoll", _KEYS, 2, _VALUES, 0, 8, written=[*words(_KEYS, polled), (_VALUES, 0), (_VALUES + 8, 0)])

    def _close(self) -> None:
        descriptor = structures.any_fd(self._rng)
        if descriptor > 2:
            self._call("close", descriptor)

    def _fcntl(self) -> None:
        rng = self._rng
        command, argument = rng.choice(
            ((4, 0o20000), (4, 0), (8, 1000), (8, _NO_FD - 999), (10, 34), (10, 0), (1030, 120))
        )
        self._call("fcntl", structures.event_fd(rng), command, argument)

    def _trace(self) -> None:
        rng = self._rng
        data = rng.choice((0, 0, 1, 19, 0x1F, 0x7F, _VALUES, contents.number(rng)))
        address = rng.choice((0, _VALUES, layout.CODE, 1, 0x402, 0x403, 0x350, 0x388, contents.number(rng)))
        self._call("ptrace", rng.choice(_PTRACE), rng.choice(_PIDS), address, data)

    def _wait(self) -> None:
        self._call("wait4", self._rng.choice((_NO_FD, 1001, 1002)), 0, 0x4000_0001, 0)

    def _order_all(self) -> None:
        self._call("prctl", self._rng.choice((31, 32)), 0, 0, 0, 0)

    def _other(self) -> None:
        """What events count and programs see."""
        rng = self._rng
        match rng.randrange(6):
            case 0:
                self._call("sched_yield")
            case 1:
                self._call("getpid")
            case 2:
                self._call("tkill", rng.choice((1000, 1001, 1002)), rng.choice((10, 12, 18, 23, 34)))
            case 3:
                self._call("nanosleep", _KEYS, 0, written=[(_KEYS, 0), (_KEYS + 8, rng.choice((1, 1000, 50_000)))])
            case 4:
                address = layout.ELSEWHERE + 0x1000 * rng.randrange(8)
                self._call("mmap", address, 0x2000, 3, 0x32, _NO_FD, 0)
            case 5:
                self._call("read", 0, _VALUES, 1, written=[(_VALUES, 0)])


_ACTIONS: tuple[Callable[[PerfProgram], None], ...] = (
    *(PerfProgram._random_bpf,) * 7, *(PerfProgram._open_event,) * 4, *(PerfProgram._ioctl,) * 6,
    *(PerfProgram._map,) * 3, *(PerfProgram._change_mapping,) * 2, PerfProgram._write_mapping,
    *(PerfProgram._read,) * 4,
    PerfProgram._poll, PerfProgram._close, PerfProgram._fcntl, *(PerfProgram._trace,) * 3, PerfProgram._wait,
    PerfProgram._order_all, *(PerfProgram._other,) * 3, PerfProgram._give_output,
)  # fmt: skip
