"""PerfEventFile: an event behind a guest's file descriptor: read, ioctl, mmap, poll, SIGIO, close."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, EBADF, EBUSY, EINVAL, ENODEV, ENOSPC, ENOTTY, EOPNOTSUPP, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_ASYNC, O_RDWR, POLLERR, POLLHUP, POLLIN, POLLRDNORM, Caller, File
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE, Holder
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.signals.signal import (
    SI_KERNEL,
    SIGIO,
    SIGTRAP,
    TRAP_PERF,
    TRAP_PERF_FLAG_ASYNC,
    SignalInfo,
    bit,
)
from perfcore.abi.ioctl import PERF_IOC_FLAG_GROUP, PerfIoctl
from perfcore.events.copied_attr import copy_attr
from perfcore.events.drivers.breakpoint import BreakpointDriver
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import POLL_HUP, POLL_IN, EventState
from perfcore.events.guest_buffer import AuxMapping, GuestBuffer
from perfcore.events.kernel import Linux
from perfcore.events.programs import MOST_PROGRAMS, ProgramFile, set_program
from perfcore.events.subsystem import PerfEvents

_NO_OUTPUT = (1 << 64) - 1  # the argument of PERF_EVENT_IOC_SET_OUTPUT for none: a long, where an int is no descriptor
_BANDS = {POLL_IN: POLLIN | POLLRDNORM, POLL_HUP: POLLHUP | POLLERR}  # si_band, fs/fcntl.c band_table


class GuestKernel(Linux, Protocol):
    """What an event of a guest needs of its kernel."""

    @property
    def memory(self) -> PhysicalMemory: ...
    @property
    def tasks(self) -> Mapping[int, Task]: ...

    def send_signal(self, task: Task, info: SignalInfo) -> bool: ...

    def come_to_now(self, cpu: Cpu) -> None:
        """If it idles: let the time pass there that has passed on the CPU that executes."""


class PerfEventFile(File):
    """The open event. Its descriptor and its mappings keep it; when the last has gone the event is closed."""

    reads_each_piece = True

    def __init__(self, perf_events: PerfEvents, kernel: GuestKernel, event: PerfEvent, owner: Task) -> None:
        super().__init__(O_RDWR, "anon_inode:[perf_event]")
        self.event = event
        self.descriptor = -1  # the first one: si_fd
        self._perf_events = perf_events
        self._kernel = kernel
        self._owner = owner
        self._buffer: GuestBuffer | None = None  # that the event writes
        self._aux: AuxMapping | None = None  # its mappings of the buffer's AUX area
        self._mappings = 0  # that processes have of this file
        self._ioctls: dict[int, Callable[[Caller, int], int]] = {
            PerfIoctl.ENABLE: lambda task, argument: self._order(event.enable, argument),
            PerfIoctl.DISABLE: lambda task, argument: self._order(event.disable, argument),
            PerfIoctl.RESET: lambda task, argument: self._order(event.reset, argument),
            PerfIoctl.REFRESH: lambda task, argument: self._refresh(argument),
            PerfIoctl.PERIOD: self._set_period,
            PerfIoctl.ID: self._write_id,
            PerfIoctl.SET_OUTPUT: self._set_output,
            PerfIoctl.PAUSE_OUTPUT: lambda task, argument: self._pause(argument),
            PerfIoctl.SET_FILTER: self._set_filter,
            PerfIoctl.SET_BPF: self._set_program,
            PerfIoctl.QUERY_BPF: self._query_programs,
            PerfIoctl.MODIFY_ATTRIBUTES: self._modify,
        }
        event.on_signal = self._signal
        event.on_sigtrap = self._sigtrap
        perf_events.room.used += 1

    def close(self) -> None:
        self._perf_events.room.used -= 1
        self.event.on_signal = None
        self.event.close()
        self._use(None)

    def _come_to_now(self) -> None:
        """The caller may be on another CPU than the one that is counted."""
        event = self.event
        if not event.of_task:
            self._kernel.come_to_now(self._kernel.cpus[event.cpu])

    def read(self, task: Caller, destination: Destination) -> int:
        self._come_to_now()
        data = self.event.read()
        if destination.left < len(data):
            raise LinuxError(ENOSPC, f"a reading has {len(data)} bytes, not {destination.left}")
        return destination.give_whole(data)

    def poll(self) -> int:
        """POLLIN once after a wakeup; POLLHUP without a buffer, and when the event's task has gone."""
        event = self.event
        if event.state <= EventState.REVOKED:
            return POLLERR
        if event.state <= EventState.EXIT or event.ring_buffer is None:
            return POLLHUP
        return POLLIN if event.ring_buffer.poll_ready else 0

    def polled(self) -> None:
        if self.event.ring_buffer is not None:
            self.event.ring_buffer.poll_ready = False

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        buffer = self.event.ring_buffer
        return (self.changed,) if buffer is None else (self.changed, buffer.readers)

    # ioctl

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if self.event.state <= EventState.REVOKED:
            raise LinuxError(ENODEV, f"the PMU {self.event.driver.name} has gone")
        run = self._ioctls.get(request)
        if run is None:
            raise LinuxError(ENOTTY, f"a perf event has no ioctl {request:#x}")
        self._come_to_now()
        return run(task, argument)

    def _order(self, order: Callable[[bool], None], argument: int) -> int:
        order(bool(argument & PERF_IOC_FLAG_GROUP))
        return 0

    def _refresh(self, argument: int) -> int:
        count = argument & 0xFFFF_FFFF
        self.event.refresh(count - (count >> 31 << 32))
        return 0

    def _set_period(self, task: Caller, argument: int) -> int:
        self.event.set_period(struct.unpack("<Q", task.mm.read(argument, 8))[0])
        return 0

    def _write_id(self, task: Caller, argument: int) -> int:
        task.mm.write(argument, struct.pack("<Q", self.event.primary_id))
        return 0

    def _set_output(self, task: Caller, argument: int) -> int:
        """To another event's buffer, which stays as long as anyone writes it; -1: to none."""
        other = None if argument == _NO_OUTPUT else group_file(task, argument & 0xFFFF_FFFF)
        if self._mappings:
            raise LinuxError(EINVAL, "IOC_SET_OUTPUT: the event's buffer is mapped")
        if other is None:
            self._perf_events.set_output(self.event, None)
            self._use(None)
            return 0
        self._perf_events.set_output(self.event, other.event)
        self._use(other._buffer)
        return 0

    def share_output(self, other: PerfEventFile) -> None:
        """The event was opened with PERF_FLAG_FD_OUTPUT: it writes the buffer of `other`."""
        self._use(other._buffer)

    def _pause(self, argument: int) -> int:
        buffer = self.event.ring_buffer
        if buffer is None or not buffer.data_pages:
            raise LinuxError(EINVAL, "IOC_PAUSE_OUTPUT: there is no buffer")
        buffer.paused = bool(argument)
        return 0

    def _set_filter(self, task: Caller, argument: int) -> int:
        """strndup_user of at most a page."""
        text = task.mm.read_string(argument, PAGE_SIZE)
        if len(text) >= PAGE_SIZE:
            raise LinuxError(EINVAL, "IOC_SET_FILTER: the filter is longer than a page")
        self.event.driver.set_filter(self.event, text.decode("utf-8", "surrogateescape"))
        return 0

    def _set_program(self, task: Caller, argument: int) -> int:
        file = task.files.get(argument & 0xFFFF_FFFF)
        if not isinstance(file, ProgramFile):
            raise LinuxError(EINVAL, f"descriptor {argument & 0xFFFF_FFFF} is no BPF program's")
        set_program(self.event, file.program)
        return 0

    def _query_programs(self, task: Caller, argument: int) -> int:
        """perf_event_query_prog_array(): struct perf_event_query_bpf: ids_len, prog_cnt, ids."""
        programs = self.event.driver.programs(self.event)
        if programs is None:
            raise LinuxError(EINVAL, f"{self.event.driver.name} events are no tracepoints")
        room = struct.unpack("<I", task.mm.read(argument, 4))[0]
        if room > MOST_PROGRAMS:
            raise LinuxError(E2BIG, f"ids_len {room}: a tracepoint has at most {MOST_PROGRAMS} programs")
        ids = programs.ids
        task.mm.write(argument + 4, struct.pack("<I", len(ids)))
        task.mm.write(argument + 8, struct.pack(f"<{len(ids[:room])}I", *ids[:room]))
        if room and room < len(ids):
            raise LinuxError(ENOSPC, f"there are {len(ids)} programs")
        return 0

    def _modify(self, task: Caller, argument: int) -> int:
        """perf_event_modify_attr(): Linux does it for breakpoints only, and for those that were inherited, too."""
        attr = copy_attr(task, argument)
        self._perf_events.check_copied(attr)
        event = self.event
        if attr.type != event.attr.type:
            raise LinuxError(EINVAL, "IOC_MODIFY_ATTRIBUTES cannot change the type")
        if not isinstance(event.driver, BreakpointDriver):
            raise LinuxError(EOPNOTSUPP, f"{event.driver.name} events cannot be modified")
        for each in (event, *event.children):
            each.attr.sig_data = attr.sig_data
            event.driver.modify(each, attr)
        return 0

    # mmap

    def map_frames(self, task: Caller, length: int, offset: int, protection: int, shared: bool) -> tuple[int, Holder]:
        """perf_mmap: page 0 and 2**n pages. A second mapping shows the same frames if it has the same size."""
        event = self.event
        if event.state <= EventState.REVOKED:
            raise LinuxError(ENODEV, f"the PMU {event.driver.name} has gone")
        if event.cpu == -1 and event.attr.inherit:
            raise LinuxError(EINVAL, "an inherited event of all CPUs cannot have a buffer")
        if not shared:
            raise LinuxError(EINVAL, "a perf buffer is mapped with MAP_SHARED")
        if offset:
            return self._map_aux(task, length, offset, protection)
        pages = -(-length // PAGE_SIZE)  # mmap(2) takes whole pages
        data_pages = pages - 1
        if data_pages < 0 or data_pages & (data_pages - 1):
            raise LinuxError(EINVAL, f"a perf buffer has 1 + 2**n pages, not {length:#x} bytes")
        if self._buffer is not None and self._buffer.mappings:
            if self._buffer.pages != pages:
                raise LinuxError(EINVAL, f"the event's buffer is mapped with {self._buffer.pages} pages")
            if not self._mappings:
                raise LinuxError(EBUSY, "the event writes another's buffer, whose page tells of that one")
            return self._buffer.first, self
        locked, overwrite = self._perf_events.locked_memory, not protection & PROT_WRITE
        buffer = GuestBuffer(self._kernel.memory, locked, task, pages, event, overwrite=overwrite)
        self._use(buffer)
        event.attach_buffer(buffer.ring)
        event.map_page(buffer.ring.page)
        return buffer.first, self

    def _map_aux(self, task: Caller, length: int, offset: int, protection: int) -> tuple[int, Holder]:
        """... and of the AUX area behind it."""
        buffer = self._buffer
        if buffer is None or not buffer.mappings:
            raise LinuxError(EINVAL, "there is no buffer beside which an AUX area could be")
        area = buffer.aux_area(task, self.event, length, offset, protection)
        if self._aux is None or self._aux.area is not area:
            self._aux = AuxMapping(self, buffer, area)
        return buffer.aux_first, self._aux

    def _use(self, buffer: GuestBuffer | None) -> None:
        """Let the buffer go that the event has written, and keep `buffer`."""
        old = self._buffer
        if old is buffer:
            return
        self.event.unmap_page()
        if buffer is None or not buffer.mappings:
            self.event.attach_buffer(None)
        self._buffer = buffer
        if buffer is not None:
            buffer.join(self)
        if old is not None:
            old.leave(self)

    @property
    def may_be_split(self) -> bool:
        """perf_mmap_may_split()."""
        return False

    def buffer_unmapped(self) -> None:
        """Nobody has the buffer mapped that the event writes."""
        self._use(None)
        self.changed.wake()

    def mapped(self) -> None:
        super().mapped()
        self._mappings += 1
        if self._buffer is not None:
            self._buffer.mappings += 1

    def unmapped(self) -> None:
        """perf_mmap_close: with the last mapping all events let the buffer go that write it."""
        buffer = self._buffer
        self._mappings -= 1
        if buffer is not None:
            buffer.mappings -= 1
            if not buffer.mappings:
                buffer.discharge()
                for file in list(buffer.files):
                    file.buffer_unmapped()
        super().unmapped()

    # SIGIO

    def _signal(self, reason: int) -> None:
        """kill_fasync: to who fcntl named, if O_ASYNC is set. With F_SETSIG the siginfo says why and for what."""
        if not self.flags & O_ASYNC:
            return
        task = self._kernel.tasks.get(abs(self.signal_owner)) if self.signal_owner else None
        if task is None:
            return
        if self.signal:
            info = SignalInfo(self.signal, reason, pid=_BANDS[reason], value=self.descriptor)
        else:
            info = SignalInfo(SIGIO, SI_KERNEL)
        recursion = self._kernel.tracepoints.recursion
        recursion.pending_irq(self._kernel.executing_cpu, lambda: self._kernel.send_signal(task, info))

    def _sigtrap(self, cpu: Cpu, address: int) -> None:
        """perf_sigtrap(): to the task that executes."""
        task = self._kernel.current(cpu)
        if task is None or task.exit_code is not None:
            return
        attr = self.event.attr
        asynchronous = TRAP_PERF_FLAG_ASYNC if task.signals.blocked & bit(SIGTRAP) else 0
        told = struct.pack("<QII", attr.sig_data, attr.type, asynchronous)
        info = SignalInfo(SIGTRAP, TRAP_PERF, address=address, behind_address=told)
        self._kernel.tracepoints.recursion.without(cpu, lambda: self._kernel.send_signal(task, info))


def event_file(task: Caller, descriptor: int) -> PerfEventFile:
    """The event of a descriptor of `task`. EBADF if it is none, EINVAL if it is no event."""
    file = task.files.get(descriptor)
    if not isinstance(file, PerfEventFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is not a perf event")
    return file


def group_file(task: Caller, descriptor: int) -> PerfEventFile:
    """perf_fget_light: anything that is not an event is EBADF."""
    try:
        return event_file(task, descriptor)
    except LinuxError as error:
        raise LinuxError(EBADF, error.why) from None
