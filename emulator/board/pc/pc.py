"""Pc: a board with x86-64 CPUs as PCs are: local APICs and I/O APIC, 8259s, 8254, serial port, ACPI's tables.

There is no PCI, no display, no keyboard, and no BIOS: what would be left of that when an image begins is there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from emulator.arch.processor import Processor
from emulator.board.board import Board, Boot, Ended, Outside, ram_loader
from emulator.board.bus import Bus
from emulator.board.calls import let_look, tell_of_calls
from emulator.board.image import NotBootable
from emulator.board.last_exceptions import told
from emulator.board.pc import acpi, fw_cfg, mp_tables, pic, pit, power
from emulator.board.pc.cmos import FIRST_PORT as CMOS_PORT
from emulator.board.pc.cmos import PORTS as CMOS_PORTS
from emulator.board.pc.cmos import Cmos
from emulator.board.pc.image import PcImage
from emulator.board.pc.interrupts import Interrupts
from emulator.board.pc.loading import Place, load
from emulator.board.pc.memory_map import IO_APIC, IO_APIC_BYTES, MOST_RAM_BYTES, VIRTIO, VIRTIO_SLOT_BYTES
from emulator.board.pc.pc_cpu import PcCpu
from emulator.board.pc.pc_pmu import PcPmu
from emulator.board.pc.pc_unit import PcUnit
from emulator.board.pc.ports import Ports
from emulator.board.pc.starting import start
from emulator.board.pc.taken_exceptions import trace_exceptions
from emulator.board.pc.uart16550 import PORTS as UART_PORTS
from emulator.board.pc.uart16550 import Uart16550
from emulator.board.serial_input import SerialInput
from emulator.board.virtio import slots
from emulator.board.virtio.console import Console
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.machine import Hardware

UART, UART_INTERRUPT = 0x3F8, 4  # COM1
EXIT_PORTS = (0xF4, 4), (0x501, 2)  # as QEMU's tests and QEMU itself have it: first port, ports
FIRST_VIRTIO_PIN, VIRTIO_PINS = 16, 8  # of the I/O APIC: slots share them in turn


class Pc(Board[PcCpu]):
    """Devices, and whatever has been loaded."""

    kept = (
        "interrupts", "uart", "pit", "_at_ports", "cpus", "_transports", "_limits", "_clock", "_extended_cycles",
        "_executing_number",
    )  # fmt: skip

    def __init__(
        self,
        hardware: Hardware,
        boot: Boot | None,
        outside: Outside,
        pmus: Sequence[PcPmu | None] = (),
        units: Sequence[Sequence[PcUnit]] = (),
    ) -> None:
        """`boot`: None where a saved state will be restored. `pmus`: one for each CPU, or none; `units`: likewise, all.

        NotBootable: what does not fit into RAM.
        """
        super().__init__(hardware, outside.observers)
        config = hardware.config
        if hardware.memory.size_bytes > MOST_RAM_BYTES:
            raise NotBootable(f"this board has room for {MOST_RAM_BYTES >> 30} GiB of RAM: --memory wants less")
        place = ram_loader(hardware, 0)
        reset = partial(self.end, Ended.RESET)
        processor = Processor.of(config.core, config.isa, config.cpus)
        self.interrupts = Interrupts(self._look_at_interrupts)
        self.bus, self.ports = Bus(), Ports(outside.message)
        self._populate(
            [
                PcCpu(
                    cpu,
                    hardware.clock,
                    processor,
                    self.interrupts,
                    self.bus,
                    self.ports,
                    pmu,
                    self._look_at_interrupts,
                    reset,
                    outside.message,
                    its_units,
                )
                for cpu, pmu, its_units in zip(
                    hardware.cpus, pmus or [None] * config.cpus, units or [()] * config.cpus, strict=True
                )
            ]
        )
        self.interrupts.connect([cpu.apic for cpu in self.cpus])
        self.uart = Uart16550(outside.send, partial(self.interrupts.set_isa, UART_INTERRUPT))
        self.pit = pit.Pit(hardware.clock, self.interrupts.pulse_timer)
        console = Console(outside.send) if outside.virtio_console else None
        virtio = self._virtio_devices(outside, config.seed, console)
        self._attach_devices(hardware, "" if boot is None else boot.command_line, outside)
        self._transports = slots.attach(
            self.bus,
            GuestMemory(hardware.memory, 0),
            virtio,
            self._test_exit(outside),
            lambda slot, asserted: self.interrupts.set_shared(virtio_pin(slot), slot, asserted),
            outside.message,
            self._device_is_busy,
            slots.Layout(VIRTIO, VIRTIO_SLOT_BYTES, len(virtio) + bool(outside.test_device), 0),
        )
        if boot is not None:
            self._load(hardware, boot, place, len(virtio) + bool(outside.test_device))
        self._attend(SerialInput(outside.source, console or self.uart, self._clock), self.pit)
        if outside.calls is not None:
            tell_of_calls(outside.calls, self.cpus)
            let_look(outside.calls, self.cpus[0].cpu, hardware.clock, self._observers)
        if outside.trace is not None:
            for cpu in self.cpus:
                cpu.trace = outside.trace
                if outside.trace.exceptions:
                    trace_exceptions(cpu.cpu.number, cpu.core, outside.trace)
                if outside.trace.interrupts:
                    cpu.apic.hears = self._note_interrupt

    def _attach_devices(self, hardware: Hardware, command_line: str, outside: Outside) -> None:
        clock, ports, pics = hardware.clock, self.ports, self.interrupts.pics
        cpus, ram_bytes = len(self.cpus), hardware.memory.size_bytes
        reset = partial(self.end, Ended.RESET)
        control_b, cmos = pit.SystemControl(self.pit), Cmos(clock, ram_bytes, cpus, outside.message)
        told = fw_cfg.FwCfg(cpus, ram_bytes, command_line)
        management = power.PowerManagement(clock, partial(self.end, Ended.OFF))
        reset_control = power.ResetControl(reset)
        self._at_ports = [control_b, cmos, told, management, reset_control]
        self.bus.attach("I/O APIC", IO_APIC, IO_APIC_BYTES, self.interrupts.io_apic)
        ports.attach("COM1", UART, UART_PORTS, self.uart)
        ports.attach("PIT", pit.FIRST_PORT, pit.PORTS, self.pit)
        ports.attach("system control B", pit.SYSTEM_CONTROL, 1, control_b)
        ports.attach("first 8259", pic.FIRST, pic.PORTS, pic.PicPorts(pics.first))
        ports.attach("second 8259", pic.SECOND, pic.PORTS, pic.PicPorts(pics.second))
        ports.attach("ELCR", pic.EDGE_LEVEL, pic.EDGE_LEVEL_PORTS, pic.EdgeLevelPorts(pics))
        ports.attach("CMOS", CMOS_PORT, CMOS_PORTS, cmos)
        ports.attach("fw_cfg", fw_cfg.FIRST_PORT, fw_cfg.PORTS, told, width=2)
        ports.attach("power management", power.PM_EVENTS, power.PORTS, management, width=4)
        ports.attach("reset control", power.RESET, 1, reset_control)
        ports.attach("keyboard command", power.KEYBOARD_COMMAND, 1, power.KeyboardPort(reset))
        ports.attach("system control A", power.SYSTEM_CONTROL_A, 1, power.SystemControlA(reset))
        for first, count in EXIT_PORTS:
            ports.attach("exit port", first, count, power.ExitPort(self._end_with), width=4)

    def _load(self, hardware: Hardware, boot: Boot, place: Place, virtio_slots: int) -> None:
        image = boot.image
        assert isinstance(image, PcImage), "read_pc_image has read it"
        ram_bytes = hardware.memory.size_bytes
        leaf = hardware.cpus[0].system_registers.cpuid(1, 0)
        firmware = acpi.tables(len(self.cpus), [virtio_pin(slot) for slot in range(virtio_slots)])
        firmware |= mp_tables.tables(len(self.cpus), leaf[0], leaf[3])
        for address, table in firmware.items():
            place("a table", address, table)
        told = load(image, boot, ram_bytes, place)
        self.cpus[0].apic.act_as_boot_processor()
        start(self.cpus[0], image, told)

    def last_exceptions(self) -> list[str]:
        cpus = [cpu for cpu in self.cpus if cpu.has_died]
        if self.ended is Ended.LIMIT:
            cpus = [cpu for cpu in self.cpus if cpu.last_exceptions.goes_round]
        rows = [row for cpu in cpus for row in cpu.last_exceptions.rows]
        if not cpus and self.ended in (Ended.RESET, Ended.IDLE):
            rows = [row for cpu in self.cpus for row in cpu.last_exceptions.rows if row.is_kernels]
        return told(rows)

    def _note_interrupt(self, number: int, what: str) -> None:
        cpu = self.cpus[number]
        cpu.trace.note(cpu.cpu, f"interrupt: {what}")


def virtio_pin(slot: int) -> int:
    """Of the I/O APIC."""
    return FIRST_VIRTIO_PIN + slot % VIRTIO_PINS
