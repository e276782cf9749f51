"""Uart16550: a PC's serial port. National Semiconductor PC16550D. It sends at once, and never loses a byte: more than
its FIFO holds waits in front of it."""

from __future__ import annotations

from collections.abc import Callable

DATA, INTERRUPT_ENABLE, INTERRUPT_ID, LINE_CONTROL, MODEM_CONTROL, LINE_STATUS, MODEM_STATUS, SCRATCH = range(8)
FIFO_CONTROL = INTERRUPT_ID  # when it is written
PORTS = 8
DLAB = 1 << 7  # LCR: the first two registers are the divisor
LOOP = 1 << 4  # MCR
RECEIVE_ENABLED, TRANSMIT_ENABLED = 1 << 0, 1 << 1  # IER
DATA_READY, OVERRUN, TRANSMITTER_EMPTY = 1 << 0, 1 << 1, 1 << 5 | 1 << 6  # LSR: THRE, TEMT
FIFO_BYTES = 16
NOTHING_PENDING, RECEIVED, TRANSMITTED = 1, 4, 2  # IIR
FIFOS_ENABLED = 0xC0  # IIR, if FCR says so
CONNECTED = 0xB0  # MSR: DCD, DSR, CTS
POLLS = 256  # looks at the status in a row, without a byte, by which a guest waits for one


class Uart16550:
    """A port whose bytes go to `send`, with its interrupt line."""

    kept = (
        "_received", "_looped", "_overrun", "_enabled", "_line_control", "_modem_control", "_scratch", "_divisor",
        "_fifos", "_transmitted", "_polls", "transfers",
    )  # fmt: skip
    kept_growing = "_received", "_looped"

    def __init__(self, send: Callable[[bytes], None], set_line: Callable[[bool], None]) -> None:
        self._send = send
        self._set_line = set_line
        self._received = bytearray()
        self._looped = bytearray()  # what it has sent to itself, of which as much is kept as hardware does
        self._overrun = 0
        self._enabled = self._line_control = self._modem_control = self._scratch = 0
        self._divisor = 12  # 9600 baud
        self._fifos = 0
        self._transmitted = False  # an interrupt for that is pending
        self._polls = 0
        self.transfers = 0  # bytes that were read or written
        self.when_polled: Callable[[], None] | None = None  # called when somebody looks for bytes again and again

    @property
    def wants_input(self) -> bool:
        """Whether somebody waits to be interrupted by bytes, and has read all there were."""
        return not self._received and bool(self._enabled & RECEIVE_ENABLED)

    def receive(self, data: bytes) -> None:
        """Bytes from outside: they wait until the guest reads them."""
        self._received += data
        self._update()

    @property
    def _incoming(self) -> bytearray:
        return self._looped if self._modem_control & LOOP else self._received

    @property
    def _pending(self) -> int:
        if self._incoming and self._enabled & RECEIVE_ENABLED:
            return RECEIVED
        if self._transmitted and self._enabled & TRANSMIT_ENABLED:
            return TRANSMITTED
        return NOTHING_PENDING

    def _update(self) -> None:
        self._set_line(self._pending != NOTHING_PENDING)

    def read(self, offset: int, size: int) -> int:
        if self._line_control & DLAB and offset <= INTERRUPT_ENABLE:
            return self._divisor >> 8 * offset & 0xFF
        if offset == DATA:
            self._note_transfer()
            byte = self._incoming.pop(0) if self._incoming else 0
            self._update()
            return byte
        if offset == INTERRUPT_ID:
            pending = self._pending
            if pending == TRANSMITTED:
                self._transmitted = False
                self._update()
            return pending | self._fifos
        if offset == LINE_STATUS:
            self._note_poll()
            overrun, self._overrun = self._overrun, 0
            return TRANSMITTER_EMPTY | overrun | (DATA_READY if self._incoming else 0)
        return {
            INTERRUPT_ENABLE: self._enabled,
            LINE_CONTROL: self._line_control,
            MODEM_CONTROL: self._modem_control,
            MODEM_STATUS: self._modem_status,
            SCRATCH: self._scratch,
        }[offset]

    @property
    def _modem_status(self) -> int:
        """In loopback its own outputs: DTR is DSR, RTS is CTS, OUT1 is RI, OUT2 is DCD."""
        control = self._modem_control
        if not control & LOOP:
            return CONNECTED
        return (control & 1) << 5 | (control >> 1 & 1) << 4 | (control >> 2 & 1) << 6 | (control >> 3 & 1) << 7

    def write(self, offset: int, size: int, value: int) -> None:
        if self._line_control & DLAB and offset <= INTERRUPT_ENABLE:
            shift = 8 * offset
            self._divisor = self._divisor & ~(0xFF << shift) | value << shift
        elif offset == DATA:
            self._note_transfer()
            if self._modem_control & LOOP:
                self._loop(value)
            else:
                self._send(bytes((value,)))
            self._transmitted = True
        elif offset == INTERRUPT_ENABLE:
            if value & ~self._enabled & TRANSMIT_ENABLED:
                self._transmitted = True  # it is empty, as ever
            self._enabled = value & 0xF
        elif offset == FIFO_CONTROL:
            self._fifos = FIFOS_ENABLED if value & 1 else 0
            if value & 2:
                self._looped.clear()
        elif offset == LINE_CONTROL:
            self._line_control = value
        elif offset == MODEM_CONTROL:
            self._modem_control = value & 0x1F
            self._looped.clear()
        elif offset == SCRATCH:
            self._scratch = value
        self._update()

    def _loop(self, byte: int) -> None:
        """A full FIFO keeps what it has; without FIFOs the new byte is in the old one's place."""
        if len(self._looped) < (FIFO_BYTES if self._fifos else 1):
            self._looped.append(byte)
            return
        self._overrun = OVERRUN
        if not self._fifos:
            self._looped[:] = (byte,)

    def _note_poll(self) -> None:
        self._polls += 1
        if self._polls >= POLLS and not self._received:
            self._polls = 0
            if self.when_polled is not None:
                self.when_polled()

    def _note_transfer(self) -> None:
        self.transfers += 1
        self._polls = 0
