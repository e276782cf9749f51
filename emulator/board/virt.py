"""Virt: a board with AArch64 CPUs as QEMU's and others' `virt` have it: GICv3, generic timer, PL011, PSCI.

What is executed is the guest's, kernel and all: at EL1 and EL0. There is no EL2 and no EL3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from emulator.arch.processor import Processor
from emulator.board import gicv2
from emulator.board.board import Board, Boot, Ended, Outside, ram_loader
from emulator.board.board_cpu import BoardCpu, BoardMonitors, BoardPmu, BoardProfiling
from emulator.board.bus import Bus
from emulator.board.calls import tell_of_calls
from emulator.board.device_tree import flattened
from emulator.board.gic import DISTRIBUTOR_BYTES, GICV3, REDISTRIBUTOR_BYTES, Gic, Redistributors
from emulator.board.image import NotBootable
from emulator.board.last_exceptions import told
from emulator.board.pl011 import Pl011
from emulator.board.pl031 import Pl031
from emulator.board.psci import Firmware
from emulator.board.register_maps import (
    GICV2_DISTRIBUTOR,
    GICV2_INTERFACE,
    GICV3_DISTRIBUTOR,
    GICV3_REDISTRIBUTOR,
    PL011,
    PL031,
    within,
)
from emulator.board.semihosting import Semihosting
from emulator.board.serial_input import SerialInput
from emulator.board.trace import Trace
from emulator.board.virt_tree import (
    GIC_DISTRIBUTOR,
    GIC_INTERFACES,
    GIC_REDISTRIBUTORS,
    RAM_BASE,
    RTC,
    RTC_BYTES,
    RTC_INTERRUPT,
    UART,
    UART_BYTES,
    UART_INTERRUPT,
    device_tree,
)
from emulator.board.virtio import slots
from emulator.board.virtio.console import Console
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Hardware

TWO_MIB = 2 << 20


class Virt(Board[BoardCpu]):
    """Devices, firmware, and whatever has been loaded."""

    kept = (
        "_gic", "_senders", "uart", "rtc", "cpus", "_transports", "_limits", "_clock", "_extended_cycles",
        "_executing_number",
    )  # fmt: skip
    kept_ranges = {"_senders": range(0)}  # with GICv3 there are none

    def __init__(
        self,
        hardware: Hardware,
        boot: Boot | None,
        outside: Outside,
        pmus: Sequence[BoardPmu | None] = (),
        monitors: Sequence[BoardMonitors | None] = (),
        profiling: Sequence[BoardProfiling | None] = (),
    ) -> None:
        """`boot`: None where a saved state will be restored. `pmus`, `monitors`, `profiling`: of each CPU, or of none.

        NotBootable: what does not fit into RAM.
        """
        super().__init__(hardware, outside.observers)
        config = hardware.config
        self._gic = Gic(config.cpus, self._look_at_interrupts, outside.gic)
        self.uart = Pl011(outside.send, partial(self._gic.set_level, UART_INTERRUPT))
        self.rtc = Pl031(self._clock, partial(self._gic.set_level, RTC_INTERRUPT))
        self.bus = Bus()
        self.bus.when_missing = lambda text: outside.message(f"{text}; PC {self._executing.core.pc:#x}")
        self._senders: gicv2.Senders | None = None
        self._attach_gic()
        self.bus.attach("PL011", UART, UART_BYTES, self.uart, within(PL011))
        self.bus.attach("PL031", RTC, RTC_BYTES, self.rtc, within(PL031))
        processor = Processor.of(config.core, config.isa, config.cpus)
        firmware = Firmware(self._find, partial(self.end, Ended.OFF), partial(self.end, Ended.RESET))
        self._populate(
            [
                BoardCpu(
                    cpu,
                    RAM_BASE,
                    hardware.clock,
                    processor,
                    interface,
                    self.bus,
                    pmu,
                    firmware,
                    outside.message,
                    its_monitors,
                    its_profiling,
                )
                for cpu, interface, pmu, its_monitors, its_profiling in zip(
                    hardware.cpus,
                    self._gic.interfaces,
                    pmus or [None] * config.cpus,
                    monitors or [None] * config.cpus,
                    profiling or [None] * config.cpus,
                    strict=True,
                )
            ]
        )
        self._load(hardware, boot)
        console = Console(outside.send) if outside.virtio_console else None
        self._attach_virtio(hardware, outside, console)
        self._attend(SerialInput(outside.source, console or self.uart, self._clock), self.rtc)
        if outside.semihosting:
            self._offer_semihosting(outside, "" if boot is None else boot.command_line)
        if outside.trace is not None:
            self._trace(outside.trace)
        if outside.calls is not None:
            tell_of_calls(outside.calls, self.cpus)

    def _trace(self, trace: Trace) -> None:
        def hears(cpu: int | None, what: str, interrupt: int) -> None:
            board_cpu = self._executing if cpu is None else self.cpus[cpu]
            trace.note(board_cpu.cpu, f"interrupt: {what % interrupt}")

        for each in self.cpus:
            each.trace = trace
            each.timer.answer_natively(on=not trace.sysregs)
        if trace.interrupts:
            self._gic.hears = hears

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {**super().answers, ExitReason.REGISTER: self._register}

    def _register(self, cpu: Cpu) -> None:
        """The counter is read by the core, in the midst of a turn, unless each read is to be seen."""
        board_cpu = self.cpus[cpu.number]
        board_cpu.answers[ExitReason.REGISTER]()
        self._goes_on = board_cpu.has_read_counter

    def _attach_gic(self) -> None:
        """Raises ValueError for CPUs that it does not reach."""
        gic = self._gic
        if gic.version == GICV3:
            size = len(gic.interfaces) * REDISTRIBUTOR_BYTES
            self.bus.attach("GICv3 distributor", GIC_DISTRIBUTOR, DISTRIBUTOR_BYTES, gic, within(GICV3_DISTRIBUTOR))
            has = within(GICV3_REDISTRIBUTOR, every=REDISTRIBUTOR_BYTES)
            self.bus.attach("GICv3 redistributors", GIC_REDISTRIBUTORS, size, Redistributors(gic), has)
            return
        if len(gic.interfaces) > gicv2.MOST_CPUS:
            raise ValueError(f"GICv2 reaches {gicv2.MOST_CPUS} CPUs, and there are {len(gic.interfaces)}")
        self._senders = gicv2.Senders(gic)
        parts = gic, self._senders, lambda: self._executing.cpu.number
        distributor, interfaces = gicv2.Distributor(*parts), gicv2.Interfaces(*parts)
        has = within(GICV2_DISTRIBUTOR)
        self.bus.attach("GICv2 distributor", GIC_DISTRIBUTOR, DISTRIBUTOR_BYTES, distributor, has)
        has = within(GICV2_INTERFACE)
        self.bus.attach("GICv2 CPU interfaces", GIC_INTERFACES, gicv2.INTERFACE_BYTES, interfaces, has)

    def _attach_virtio(self, hardware: Hardware, outside: Outside, console: Console | None) -> None:
        self._transports = slots.attach(
            self.bus,
            GuestMemory(hardware.memory, RAM_BASE),
            self._virtio_devices(outside, hardware.config.seed, console),
            self._test_exit(outside),
            self._gic.set_level,
            outside.message,
            self._device_is_busy,
        )

    def _offer_semihosting(self, outside: Outside, command_line: str) -> None:
        call = Semihosting(
            outside.send,
            outside.source,
            outside.shares,
            command_line,
            self._clock,
            self._end_with,
            outside.message,
        )
        for cpu in self.cpus:
            cpu.host_call = call

    def _load(self, hardware: Hardware, boot: Boot | None) -> None:
        place = ram_loader(hardware, RAM_BASE)
        if boot is None:
            return
        for address, piece in boot.image.pieces:
            place("the image", address, piece)
        end_of_ram = RAM_BASE + hardware.memory.size_bytes
        if boot.image.end > end_of_ram:
            raise NotBootable(
                f"the image says that it needs memory up to {boot.image.end:#x}: RAM ends at {end_of_ram:#x}"
            )
        initrd = _behind(boot.image.end)
        end = place("the initrd", initrd, boot.initrd)
        tree = device_tree(
            cpus=len(self.cpus),
            gic_version=self._gic.version,
            ram_bytes=hardware.memory.size_bytes,
            command_line=boot.command_line,
            seed=hardware.config.seed,
            has_pmu=self.cpus[0].has_pmu,
            has_profiling=self.cpus[0].has_profiling,
            initrd=(initrd, end) if boot.initrd else None,
            highest_hz=None if self._clock.frequencies_hz is None else self._clock.frequencies_hz[1],
        )
        data, tree_at = flattened(tree), _behind(end)
        if boot.image.is_elf and RAM_BASE + len(data) <= boot.image.lowest:
            tree_at = RAM_BASE  # where those look for it that have no register for it by convention
        place("the device tree", tree_at, data)
        self.cpus[0].start(boot.image.entry, tree_at)

    def apply_restored(self) -> None:
        for each in self.cpus:
            each.debug.apply()

    def last_exceptions(self) -> list[str]:
        cpus = self.cpus
        if self.ended is Ended.LIMIT:
            cpus = [cpu for cpu in cpus if cpu.last_exceptions.goes_round]
        elif self.ended not in (Ended.RESET, Ended.IDLE):
            cpus = [cpu for cpu in cpus if cpu.has_died]
        rows = [row for cpu in cpus for row in cpu.last_exceptions.rows]
        if self.ended in (Ended.RESET, Ended.IDLE):
            rows = [row for row in rows if row.is_kernels]
        return told(rows)

    def _find(self, number: int) -> BoardCpu | None:
        """The CPU of that affinity; None where there is none."""
        return self.cpus[number] if number < len(self.cpus) else None


def _behind(address: int) -> int:
    return -(-address // TWO_MIB) * TWO_MIB
