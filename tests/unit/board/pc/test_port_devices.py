"""What is at ports: serial port, clock, fw_cfg, power; and what is not."""

from __future__ import annotations

import pytest

from emulator.board.pc.cmos import Cmos
from emulator.board.pc.fw_cfg import FwCfg
from emulator.board.pc.ports import Ports
from emulator.board.pc.power import ExitPort, KeyboardPort, PowerManagement, ResetControl
from emulator.board.pc.uart16550 import Uart16550
from emulator.clock import Clock

NS_PER_S = 1_000_000_000


class Serial:
    def __init__(self) -> None:
        self.sent = bytearray()
        self.line = False
        self.uart = Uart16550(self.sent.extend, self._set)

    def _set(self, asserted: bool) -> None:
        self.line = asserted


def test_bytes_are_sent_and_the_port_is_empty_at_once() -> None:
    serial = Serial()
    serial.uart.write(0, 1, 0x41)
    assert (serial.sent, serial.uart.read(5, 1)) == (b"A", 0x60)  # THRE, TEMT


def test_interrupts_by_what_is_enabled() -> None:
    """PC16550D: received data comes before an empty transmitter, and reading IIR clears the latter."""
    serial, uart = Serial(), None
    uart = serial.uart
    uart.receive(b"xy")
    assert (serial.line, uart.read(2, 1)) == (False, 1)
    uart.write(1, 1, 3)
    assert (serial.line, uart.read(2, 1)) == (True, 4)
    assert (uart.read(0, 1), uart.read(5, 1) & 1, uart.read(0, 1), uart.read(5, 1) & 1) == (0x78, 1, 0x79, 0)
    assert (serial.line, uart.read(2, 1), serial.line, uart.read(2, 1)) == (True, 2, False, 1)
    uart.write(0, 1, 0x42)
    assert (serial.line, uart.read(2, 1)) == (True, 2)


def test_the_divisor_is_behind_dlab_and_fifos_are_told() -> None:
    uart = Serial().uart
    uart.write(3, 1, 0x83)
    uart.write(0, 1, 1)
    uart.write(1, 1, 2)
    assert (uart.read(0, 1), uart.read(1, 1)) == (1, 2)
    uart.write(3, 1, 3)
    assert (uart.read(0, 1), uart.read(1, 1)) == (0, 0)
    uart.write(2, 1, 1)
    assert uart.read(2, 1) == 0xC1


def test_loopback_by_which_drivers_find_it() -> None:
    """Linux's 8250 driver: RTS and OUT2 in, CTS and DCD out."""
    serial = Serial()
    serial.uart.write(4, 1, 0x1A)
    assert serial.uart.read(6, 1) & 0xF0 == 0x90
    serial.uart.write(0, 1, 0x55)
    assert (serial.uart.read(0, 1), serial.sent) == (0x55, b"")


@pytest.mark.parametrize(("fifos", "kept"), [(1, bytes(range(16))), (0, b"\xff")])
def test_loopback_keeps_what_hardware_does(fifos: int, kept: bytes) -> None:
    """PC16550D: a full FIFO keeps what it has, the register without FIFOs is overwritten; LSR.OE says so, once."""
    uart = Serial().uart
    uart.write(2, 1, fifos)
    uart.write(4, 1, 0x10)
    for byte in range(256):
        uart.write(0, 1, byte)
    assert (uart.read(5, 1), uart.read(5, 1)) == (0x63, 0x61)
    found = []
    while uart.read(5, 1) & 1:
        found.append(uart.read(0, 1))
    assert bytes(found) == kept


def test_looks_without_a_byte_are_noticed() -> None:
    uart, polled = Serial().uart, []
    uart.when_polled = lambda: polled.append(1)
    for _ in range(256):
        uart.read(5, 1)
    assert polled == [1]


def clock(cycles: list[int]) -> Clock:
    return Clock(lambda: cycles[0], NS_PER_S, 951_782_399 * NS_PER_S)  # 2000-02-28 23:59:59 UTC, a Monday


def cmos(cycles: list[int], said: list[str] | None = None) -> Cmos:
    return Cmos(clock(cycles), 512 << 20, 4, (said if said is not None else []).append)


def registers(device: Cmos, *numbers: int) -> list[int]:
    read = []
    for number in numbers:
        device.write(0, 1, number)
        read.append(device.read(1, 1))
    return read


def put(device: Cmos, number: int, value: int) -> None:
    device.write(0, 1, number)
    device.write(1, 1, value)


TIME = (0x32, 9, 8, 7, 4, 2, 0)  # century, year, month, day, hours, minutes, seconds


def test_the_clock_is_the_machines() -> None:
    cycles = [0]
    device = cmos(cycles)
    assert registers(device, *TIME) == [0x20, 0x00, 0x02, 0x28, 0x23, 0x59, 0x59]  # BCD
    assert registers(device, 6) == [2]
    cycles[0] = NS_PER_S
    assert registers(device, *TIME) == [0x20, 0x00, 0x02, 0x29, 0, 0, 0]
    put(device, 0xB, 4)  # binary, 12 hours
    assert registers(device, *TIME) == [20, 0, 2, 29, 12, 0, 0]
    cycles[0] = 13 * 3600 * NS_PER_S
    assert registers(device, 4, 2) == [0x80 | 12, 59]


def test_the_clock_is_set() -> None:
    cycles, said = [0], []
    device = cmos(cycles, said)
    put(device, 0xB, 0x82)
    for register, value in zip(TIME, (0x20, 0x24, 0x12, 0x31, 0x10, 0x20, 0x30), strict=True):
        put(device, register, value)
    put(device, 0xB, 0x02)
    cycles[0] = 86_400 * NS_PER_S
    assert registers(device, *TIME) == [0x20, 0x25, 0x01, 0x01, 0x10, 0x20, 0x30]
    assert said == []
    put(device, 0xB, 0x22)
    assert said == ["the real-time clock's interrupts are not modelled: none will come"]


def test_sizes_of_memory_are_where_bioses_keep_them() -> None:
    device = cmos([0])
    assert registers(device, 0x15, 0x16) == [640 & 0xFF, 640 >> 8]
    assert registers(device, 0x34, 0x35) == [(512 - 16) * 16 & 0xFF, (512 - 16) * 16 >> 8]  # in 64 KiB
    assert registers(device, 0x5F) == [3]


@pytest.mark.parametrize(
    ("key", "size", "value"),
    [(0, 4, b"QEMU"), (1, 4, b"\1\0\0\0"), (5, 2, b"\2\0"), (0x15, 5, b"a=b\0\0"), (77, 2, b"\0\0")],
)
def test_fw_cfg(key: int, size: int, value: bytes) -> None:
    device = FwCfg(2, 1 << 20, "a=b")
    device.write(0, 2, key)
    assert bytes(device.read(1, 1) for _ in range(size)) == value


def test_turning_off_and_resetting() -> None:
    ended: list[object] = []
    cycles = [NS_PER_S]
    management = PowerManagement(clock(cycles), lambda: ended.append("off"))
    assert management.read(4, 2) == 1  # ACPI is on
    assert management.read(8, 4) == 3_579_545
    management.write(4, 2, 1 << 13 | 5 << 10)  # a state that there is not
    assert ended == []
    management.write(4, 2, 1 << 13)
    control = ResetControl(lambda: ended.append("reset"))
    for value in (2, 6, 6):
        control.write(0, 1, value)
    KeyboardPort(lambda: ended.append("reset by 64H")).write(0, 1, 0xFE)
    ExitPort(ended.append).write(0, 4, 21)
    assert ended == ["off", "reset", "reset by 64H", 43]


def test_nothing_is_all_ones_and_told_unless_pcs_do_without() -> None:
    said: list[str] = []
    ports = Ports(said.append)
    assert (ports.read(0x60, 1), ports.read(0xCF8, 4), said) == (0xFF, 0xFFFF_FFFF, [])
    assert ports.read(0x1234, 2) == 0xFFFF
    ports.write(0x1234, 1, 0)
    assert said == [
        "IN at port 0x1234, where this board has nothing",
        "OUT at port 0x1234, where this board has nothing",
    ]


def test_a_wider_access_is_one_to_each_port() -> None:
    ports = Ports(lambda text: None)
    serial = Serial()
    ports.attach("COM1", 0x3F8, 8, serial.uart)
    ports.write(0x3FB, 1, 0x80)
    ports.write(0x3F8, 2, 0x1234)
    assert ports.read(0x3F8, 2) == 0x1234
    assert ports.read(0x3FF, 2) == 0xFF00
    with pytest.raises(ValueError, match="COM2 at port 0x3ff overlaps COM1"):
        ports.attach("COM2", 0x3FF, 1, serial.uart)
