"""GdbStub: answers what GDB asks of a board, in its remote serial protocol.

GDB's manual, "Remote Protocol": "Packets", "General Query Packets", "Stop Reply Packets". Threads are CPUs, numbered
from 1, and all of them stop together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from emulator.board.debugging import Debugged, Stop, Why
from emulator.board.last_exceptions import told
from emulator.board.stops import Watched
from emulator.probes import Probe
from perfemu.gdb.packets import PACKET_BYTES, Connection
from perfemu.gdb.targets import TARGETS

OK, UNSUPPORTED = b"OK", b""
BAD_REQUEST, BAD_ADDRESS, BUSY = b"E16", b"E0e", b"E10"  # EINVAL, EFAULT, EBUSY, in hex
TRAP, INTERRUPTED = 5, 2  # GDB's signals
MOST_MEMORY_BYTES = PACKET_BYTES // 2 - 16
MOST_BREAKPOINTS, MOST_WATCHPOINTS = 10_000, 32
ADDRESS = (1 << 64) - 1
SUPPORTED = b"PacketSize=%x;qXfer:features:read+;vContSupported+;QStartNoAckMode+;swbreak+;hwbreak+" % PACKET_BYTES
WATCHES = {2: (2, b"watch"), 3: (1, b"rwatch"), 4: (3, b"awatch")}  # Z's type -> (accesses, stop reason)
HELP = """\
monitor info: each CPU: where it is, its level, what it has executed, its cycles
monitor exceptions: the last ones that instructions of each CPU have made
monitor help: this
System registers are in 'info registers {group}'; physical memory after 'maintenance packet Qqemu.PhyMemMode:1'.
"""


class Refused(Exception):
    """An error reply."""

    def __init__(self, reply: bytes = BAD_REQUEST) -> None:
        super().__init__(reply)
        self.reply = reply


class Gone(Exception):
    """The debugger has let the board go, or has ended it."""


class GdbStub:
    """One debugger's session, as long as it is connected."""

    def __init__(self, debugged: Debugged[Any], connection: Connection) -> None:
        self._debugged = debugged
        self._target = TARGETS[debugged.cpus[0].cpu.isa]
        self._connection = connection
        self._cpu = 0  # of `g`, `m` and the like
        self._stop = Stop(0, Why.START)
        self._breakpoints: dict[tuple[int, int], bool] = {}  # (type, address)
        self._watches: dict[tuple[int, int, int], Watched] = {}  # (type, address, size)
        self._physical = False
        self._resumed = False
        self._packets: Mapping[bytes, Callable[[bytes], bytes | None]] = {
            b"?": lambda rest: self._stop_reply(),
            b"g": self._read_all, b"G": self._write_all, b"p": self._read_register, b"P": self._write_register,
            b"m": self._read_memory, b"M": self._write_memory, b"X": self._write_binary,
            b"Z": self._insert, b"z": self._remove,
            b"H": self._select, b"T": self._is_alive,
            b"c": self._continue, b"s": self._step, b"C": self._continue_with, b"S": self._step_with,
            b"D": self._detach, b"k": self._kill,
            b"vCont?": lambda rest: b"vCont;c;C;s;S", b"vCont;": self._resume, b"vKill": self._kill_politely,
            b"qSupported": lambda rest: SUPPORTED, b"QStartNoAckMode": self._stop_acknowledging,
            b"qXfer:features:read:target.xml:": self._describe,
            b"qAttached": lambda rest: b"1", b"qC": lambda rest: b"QC%x" % (self._cpu + 1),
            b"qfThreadInfo": self._threads, b"qsThreadInfo": lambda rest: b"l",
            b"qThreadExtraInfo,": self._thread_name, b"qRcmd,": self._monitor,
            b"qqemu.PhyMemMode": lambda rest: b"%d" % self._physical, b"Qqemu.PhyMemMode:": self._set_physical,
        }  # fmt: skip
        self._longest = max(map(len, self._packets))

    def stopped(self, stop: Stop, tells: bool) -> None:
        """Answer until the board is to go on. `tells`: the debugger waits to hear of it. Raises Disconnected, Gone."""
        self._stop, self._cpu, self._resumed = stop, stop.cpu, False
        if tells:
            self._connection.send(self._stop_reply())
        while not self._resumed:
            packet = self._connection.receive()
            if packet is None:
                continue  # it stands still already
            reply = self._answered(packet)
            if reply is not None:
                self._connection.send(reply)

    def ended(self, status: int) -> None:
        """The board has, while the debugger waited."""
        self._connection.send(b"W%02x" % (status & 0xFF))

    def _answered(self, packet: bytes) -> bytes | None:
        for length in range(min(self._longest, len(packet)), 0, -1):
            answer = self._packets.get(packet[:length])
            if answer is not None:
                try:
                    return answer(packet[length:])
                except Refused as refused:
                    return refused.reply
                except (ValueError, OverflowError):
                    return BAD_REQUEST
        return UNSUPPORTED

    def _stop_reply(self) -> bytes:
        stop = self._stop
        signal = INTERRUPTED if stop.why is Why.ASKED else TRAP
        reason = b""
        if stop.watched is not None:
            kind = next((kind for (kind, *_), each in self._watches.items() if each == stop.watched), 2)
            reason = b"%b:%x;" % (WATCHES[kind][1], max(stop.address, stop.watched.address))
        elif stop.why is Why.BREAKPOINT:
            pc = self._debugged.cpus[stop.cpu].debug.pc
            reason = b"swbreak:;" if (0, pc) in self._breakpoints else b"hwbreak:;"
        return b"T%02xthread:%x;%b" % (signal, stop.cpu + 1, reason)

    # ---- registers

    def _read_all(self, rest: bytes) -> bytes:
        return b"".join(self._register(number) for number in range(self._target.in_one_packet))

    def _register(self, number: int) -> bytes:
        register = self._target.registers[number]
        value = register.read(self._debugged.cpus[self._cpu])
        if value is None:
            return b"xx" * (register.bits // 8)  # GDB says "<unavailable>"
        return value.to_bytes(register.bits // 8, "little").hex().encode()

    def _read_register(self, rest: bytes) -> bytes:
        number = _number(rest)
        return self._register(number) if number < len(self._target.registers) else _refuse()

    def _write_register(self, rest: bytes) -> bytes:
        name, _, data = rest.partition(b"=")
        number = _number(name)
        if number >= len(self._target.registers):
            raise Refused
        self._set_register(number, bytes.fromhex(data.decode("ascii")))
        return OK

    def _set_register(self, number: int, data: bytes) -> None:
        register, cpu = self._target.registers[number], self._debugged.cpus[self._cpu]
        value = int.from_bytes(data, "little")
        if len(data) != register.bits // 8:
            raise Refused
        if register.write is None:
            if register.read(cpu) not in (value, None):  # GDB puts back what it has saved, whatever that is
                raise Refused
            return
        if cpu.core.owes_exit:
            raise Refused(BUSY)
        register.write(cpu, value)

    def _write_all(self, rest: bytes) -> bytes:
        data = bytes.fromhex(rest.replace(b"x", b"0").decode("ascii"))
        sizes = [register.bits // 8 for register in self._target.registers[: self._target.in_one_packet]]
        if len(data) != sum(sizes):
            raise Refused
        at = 0
        for number, size in enumerate(sizes):
            self._set_register(number, data[at : at + size])
            at += size
        return OK

    # ---- memory

    def _read_memory(self, rest: bytes) -> bytes:
        address, size = _pair(rest)
        size = min(size, MOST_MEMORY_BYTES, ADDRESS + 1 - address)
        if self._physical:
            data = self._debugged.read_physical(address, size)
        else:
            data = self._debugged.read(self._cpu, address, size)
        return data.hex().encode() if data or not size else _refuse(BAD_ADDRESS)

    def _write_memory(self, rest: bytes) -> bytes:
        place, _, data = rest.partition(b":")
        return self._store(place, bytes.fromhex(data.decode("ascii")))

    def _write_binary(self, rest: bytes) -> bytes:
        place, _, data = rest.partition(b":")
        return self._store(place, data)

    def _store(self, place: bytes, data: bytes) -> bytes:
        address, size = _pair(place)
        if size != len(data) or address + size > ADDRESS + 1:
            raise Refused
        if self._physical:
            written = self._debugged.write_physical(address, data) if data else True
        else:
            written = self._debugged.write(self._cpu, address, data)
        return OK if written else BAD_ADDRESS

    def _set_physical(self, rest: bytes) -> bytes:
        self._physical = bool(_number(rest))
        return OK

    # ---- breakpoints and watchpoints

    def _insert(self, rest: bytes) -> bytes:
        kind, address, size = _place(rest)
        if kind in WATCHES:
            accesses, _ = WATCHES[kind]
            if not 0 < size <= MOST_MEMORY_BYTES or len(self._watches) >= MOST_WATCHPOINTS:
                raise Refused
            self._watches[kind, address, size] = Watched(address, size, accesses)
            self._debugged.watch(list(self._watches.values()))
        elif kind in (0, 1):
            if len(self._breakpoints) >= MOST_BREAKPOINTS:
                raise Refused
            self._breakpoints[kind, address] = True
            self._debugged.set_breakpoint(address)
        else:
            return UNSUPPORTED
        return OK

    def _remove(self, rest: bytes) -> bytes:
        kind, address, size = _place(rest)
        if kind in WATCHES:
            if self._watches.pop((kind, address, size), None) is None:
                return OK
            self._debugged.watch(list(self._watches.values()))
        elif kind in (0, 1):
            self._breakpoints.pop((kind, address), None)
            if (1 - kind, address) not in self._breakpoints:
                self._debugged.clear_breakpoint(address)
        else:
            return UNSUPPORTED
        return OK

    # ---- threads

    def _thread(self, text: bytes) -> int | None:
        """The CPU; None: all, or any."""
        if text in (b"0", b"-1"):
            return None
        number = _number(text) - 1
        if not 0 <= number < len(self._debugged.cpus):
            raise Refused
        return number

    def _select(self, rest: bytes) -> bytes:
        number = self._thread(rest[1:])
        if number is not None and rest[:1] == b"g":
            self._cpu = number
        return OK

    def _is_alive(self, rest: bytes) -> bytes:
        self._thread(rest)
        return OK

    def _threads(self, rest: bytes) -> bytes:
        return b"m" + b",".join(b"%x" % (number + 1) for number in range(len(self._debugged.cpus)))

    def _state(self, number: int) -> str:
        cpu = self._debugged.cpus[number]
        state = "off" if not cpu.is_on else "waits" if cpu.waits else "executes"
        return f"CPU {number}: {state}, {self._target.level(cpu)}"

    def _thread_name(self, rest: bytes) -> bytes:
        number = self._thread(rest)
        return self._state(number or 0).encode().hex().encode()

    def _monitor(self, rest: bytes) -> bytes:
        command = bytes.fromhex(rest.decode("ascii")).strip()
        text = helps = HELP.format(group=self._target.system_group)
        if command == b"info":
            lines = []
            for number, cpu in enumerate(self._debugged.cpus):
                executed = cpu.core.total(Probe.INST_RETIRED)
                lines.append(
                    f"{self._state(number)} at {cpu.core.pc:#x}, {executed} instructions, {cpu.core.cycles} cycles\n"
                )
            text = "".join(lines)
        elif command == b"exceptions":
            rows = [row for cpu in self._debugged.cpus for row in cpu.last_exceptions.rows]
            text = "".join(f"{line}\n" for line in told(rows)) or "none\n"
        elif command != b"help":
            text = f"'{command.decode('ascii', 'replace')[:80]}' is none of ours:\n{helps}"
        return text.encode().hex().encode()[: PACKET_BYTES - 16]

    # ---- going on

    def _go(self, steps: set[int], alone: bool = False) -> None:
        self._resumed = True
        self._debugged.resume(steps, alone)

    def _resume(self, rest: bytes) -> bytes | None:
        """vCont: for each thread the first action that names it, or all."""
        actions: dict[int | None, bytes] = {}
        for text in rest.split(b";"):
            what, _, thread = text.partition(b":")
            if not re.fullmatch(rb"[cs]|[CS][0-9a-fA-F]{2}", what):
                raise Refused
            actions.setdefault(self._thread(thread) if thread else None, what[:1].lower())
        cpus = range(len(self._debugged.cpus))
        steps = {number for number in cpus if actions.get(number, actions.get(None)) == b"s"}
        if None in actions and actions[None] == b"s" and len(steps) > 1:
            steps = {self._cpu}  # one of them is what a user means
        self._go(steps, alone=None not in actions and len(cpus) > 1)
        return None

    def _go_from(self, rest: bytes, steps: set[int]) -> None:
        if rest:
            self._set_register(self._target.pc, _number(rest).to_bytes(8, "little"))
        self._go(steps)

    def _continue(self, rest: bytes) -> None:
        self._go_from(rest, set())

    def _step(self, rest: bytes) -> None:
        self._go_from(rest, {self._cpu})

    def _continue_with(self, rest: bytes) -> None:
        self._go_from(rest.partition(b";")[2], set())

    def _step_with(self, rest: bytes) -> None:
        self._go_from(rest.partition(b";")[2], {self._cpu})

    def _detach(self, rest: bytes) -> None:
        self._connection.send(OK)
        raise Gone

    def _kill(self, rest: bytes) -> None:
        self._debugged.kill()
        raise Gone

    def _kill_politely(self, rest: bytes) -> None:
        self._connection.send(OK)
        self._kill(rest)

    # ---- the protocol itself

    def _stop_acknowledging(self, rest: bytes) -> None:
        self._connection.send(OK)
        self._connection.acknowledges = False

    def _describe(self, rest: bytes) -> bytes:
        start, size = _pair(rest)
        size = min(size, MOST_MEMORY_BYTES)
        xml = self._target.xml
        return (b"m" if start + size < len(xml) else b"l") + xml[start : start + size]


def _refuse(reply: bytes = BAD_REQUEST) -> bytes:
    raise Refused(reply)


def _number(text: bytes) -> int:
    if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", text):
        raise Refused
    return int(text, 16)


def _pair(text: bytes) -> tuple[int, int]:
    first, _, second = text.partition(b",")
    return _number(first), _number(second)


def _place(rest: bytes) -> tuple[int, int, int]:
    """Of Z and z: type, address, size or kind; conditions and commands are not offered."""
    kind, address, size = rest.split(b";")[0].split(b",")
    return _number(kind), _number(address), _number(size)
