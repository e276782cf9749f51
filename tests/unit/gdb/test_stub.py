"""What the stub answers to packets that GDB sends, and to those that it would not."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from emulator.board.board import Ended
from perfemu.gdb.packets import Connection, Disconnected
from perfemu.gdb.server import GdbServer
from perfemu.gdb.targets import TARGETS
from tests.unit.board.booted import LOADED_AT, Booted, boot
from tests.unit.board.test_debugging import outcome
from tests.unit.board.test_virt import SGI, TWO_CPUS, WITH_VECTORS

COUNTS = "mov x3, #3\n1: add x4, x4, #1\nsubs x3, x3, #1\nb.ne 1b\n"  # behind START, one instruction
ADDS = LOADED_AT + 8
TIMEOUT_S, FOREVER = 60, 10**12
TARGET = TARGETS["aarch64"]
REGISTERS = TARGET.registers
PC_NUMBER, SP_NUMBER, STATE_NUMBER, VECTORS_NUMBER = 32, 31, 33, 34


class Client:
    """The other end, without a mind of its own."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(path)
        self._connection = Connection(self.socket)
        self._connection.acknowledges = False
        self.tell(b"QStartNoAckMode")
        assert self.hear() == b"OK"

    def tell(self, payload: bytes) -> None:
        self._connection.send(payload)

    def hear(self) -> bytes:
        reply = self._connection.receive()
        assert reply is not None, "interruptions come from here"
        return reply

    def ask(self, payload: bytes) -> bytes:
        self.tell(payload)
        return self.hear()


def session(
    script: Callable[[Client], None], folder: Path, source: str = COUNTS, cpus: int = 1, instructions: int = 200_000
) -> Booted:
    """A board whose debugger does that, and hangs up."""
    path, failures = str(folder / "socket"), list[BaseException]()

    def converse() -> None:
        client = Client(path)
        try:
            script(client)
        except BaseException as problem:
            failures.append(problem)
        finally:
            client.socket.close()

    with GdbServer(path, lambda text: None) as server:
        thread = threading.Thread(target=converse)
        thread.start()
        booted = boot(source, folder, cpus=cpus, instructions=instructions, debugger=server)
        server.ended(7)
        thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    for failure in failures:
        raise failure
    return booted


def value(reply: bytes) -> int:
    return int.from_bytes(bytes.fromhex(reply.decode()), "little")


def test_registers_of_all_kinds(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        everything = bytes.fromhex(client.ask(b"g").decode())
        assert len(everything) == sum(register.bits // 8 for register in REGISTERS[: TARGET.in_one_packet])
        assert value(client.ask(b"p%x" % PC_NUMBER)) == LOADED_AT
        assert value(client.ask(b"p%x" % STATE_NUMBER)) == 0x3C5
        assert client.ask(b"P4=0500000000000000") == b"OK"
        assert client.ask(b"P%x=%s" % (VECTORS_NUMBER, b"11" * 16)) == b"OK"
        assert client.ask(b"p%x" % VECTORS_NUMBER) == b"11" * 16
        assert client.ask(b"G" + everything.hex().encode()) == b"OK"
        assert client.ask(b"p4") == b"00" * 8
        assert client.ask(b"P4=0700000000000000") == b"OK"
        numbers = {register.name: number for number, register in enumerate(REGISTERS)}
        assert value(client.ask(b"p%x" % numbers["CurrentEL"])) == 4
        assert client.ask(b"P%x=0000000000000000" % numbers["CurrentEL"]) == b"E16"
        assert client.ask(b"P%x=00f0ff0000000000" % numbers["VBAR_EL1"]) == b"OK"
        assert value(client.ask(b"p%x" % numbers["VBAR_EL1"])) == 0xFF_F000
        for number in range(len(REGISTERS)):
            assert len(client.ask(b"p%x" % number)) == REGISTERS[number].bits // 4

    assert session(script, tmp_path).register(4) == 7 + 3


def test_the_description_is_xml_whose_numbers_are_the_stubs(tmp_path: Path) -> None:
    described = ElementTree.fromstring(TARGET.xml).iter("reg")
    expected = [(each.name, str(each.bits), str(number)) for number, each in enumerate(REGISTERS)]
    assert [(each.get("name"), each.get("bitsize"), each.get("regnum")) for each in described] == expected

    def script(client: Client) -> None:
        text, last = b"", False
        while not last:
            piece = client.ask(b"qXfer:features:read:target.xml:%x,fff" % len(text))
            last, text = piece[:1] == b"l", text + piece[1:]
        assert text == TARGET.xml

    session(script, tmp_path)


def test_breakpoints_steps_and_the_end(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        assert client.ask(b"?") == b"T05thread:1;"
        assert client.ask(b"Z1,%x,4" % ADDS) == b"OK"
        for turns in range(3):
            assert client.ask(b"vCont;c") == b"T05thread:1;hwbreak:;"
            assert value(client.ask(b"p4")) == turns
        assert client.ask(b"vCont;s:1;c") == b"T05thread:1;"
        assert value(client.ask(b"p%x" % PC_NUMBER)) == ADDS + 4
        assert client.ask(b"s") == b"T05thread:1;"
        assert client.ask(b"z1,%x,4" % ADDS) == b"OK"
        assert client.ask(b"c") == b"W07"

    assert outcome(session(script, tmp_path)) == outcome(boot(COUNTS, tmp_path))


def test_memory(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        assert client.ask(b"m%x,4" % ADDS) == bytes.fromhex("84040091").hex().encode()  # add x4, x4, #1
        assert client.ask(b"X%x,4:\x84\x08\x00\x91" % ADDS) == b"OK"  # add x4, x4, #2
        assert client.ask(b"M%x,2:8408" % ADDS) == b"OK"
        assert client.ask(b"m0,4") == b"E0e"
        assert client.ask(b"m9000000,4") == b"E0e"
        assert client.ask(b"M0,1:00") == b"E0e"
        assert client.ask(b"M%x,2:00" % ADDS) == b"E16"
        assert client.ask(b"m%x,fffffff" % ADDS)[:8] == b"84080091"
        assert client.ask(b"mffffffffffffffff,4") == b"E0e"
        assert client.ask(b"qqemu.PhyMemMode") == b"0"
        assert client.ask(b"Qqemu.PhyMemMode:1") == b"OK"
        assert client.ask(b"m%x,4" % ADDS) == b"84080091"

    assert session(script, tmp_path).register(4) == 6


def test_watchpoints(tmp_path: Path) -> None:
    source = "adr x1, data\nmov x2, #7\nldr x3, [x1]\nstr x2, [x1]\nb off\ndata: .quad 1\n"
    data = LOADED_AT + 4 + 20

    def script(client: Client) -> None:
        assert client.ask(b"Z2,%x,8" % data) == b"OK"
        assert client.ask(b"Z3,%x,4" % (data + 4)) == b"OK"
        assert client.ask(b"c") == b"T05thread:1;rwatch:%x;" % (data + 4)
        assert client.ask(b"z3,%x,4" % (data + 4)) == b"OK"
        assert client.ask(b"c") == b"T05thread:1;watch:%x;" % data
        assert client.ask(b"m%x,1" % data) == b"01"
        assert client.ask(b"c") == b"W07"

    assert outcome(session(script, tmp_path, source)) == outcome(boot(source, tmp_path))


def test_an_interruption_stops_a_busy_board(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        client.tell(b"c")
        client.socket.send(b"\x03")
        assert client.hear() == b"T02thread:1;"
        client.tell(b"k")

    booted = session(script, tmp_path, "1: add x4, x4, #1\nb 1b\n", instructions=FOREVER)
    assert booted.board.ended is Ended.KILLED


def test_two_cpus_are_two_threads(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        assert client.ask(b"qfThreadInfo") == b"m1,2"
        assert bytes.fromhex(client.ask(b"qThreadExtraInfo,2").decode()) == b"CPU 1: off, EL1"
        assert (client.ask(b"T2"), client.ask(b"T3"), client.ask(b"Hg3")) == (b"OK", b"E16", b"E16")
        assert client.ask(b"vCont;s:2;c")[:11] == b"T05thread:2"  # when it has been turned on
        assert client.ask(b"qC") == b"QC2"
        assert client.ask(b"Hg1") == b"OK"
        first = value(client.ask(b"p%x" % PC_NUMBER))
        assert client.ask(b"Hg2") == b"OK"
        assert value(client.ask(b"p%x" % PC_NUMBER)) != first
        assert client.ask(b"vCont;s:1")[:11] == b"T05thread:1"
        assert client.ask(b"D") == b"OK"

    source = WITH_VECTORS + SGI + TWO_CPUS
    booted = session(script, tmp_path, source, cpus=2)
    assert outcome(booted) == outcome(boot(source, tmp_path, cpus=2))


@pytest.mark.parametrize(
    ("packet", "reply"),
    [
        (b"vMustReplyEmpty", b""), (b"Zz", b"E16"), (b"Z5,0,0", b""), (b"Z1,xyz,4", b"E16"), (b"Z2,0,0", b"E16"),
        (b"p", b"E16"), (b"pffff", b"E16"), (b"P1=00", b"E16"), (b"P1=zz", b"E16"), (b"m", b"E16"), (b"m1", b"E16"),
        (b"M1,1", b"E16"), (b"vCont;x", b"E16"), (b"vCont;s:9", b"E16"), (b"Hg", b"E16"), (b"qRcmd,zz", b"E16"),
        (b"m-1,4", b"E16"), (b"m" + b"f" * 100 + b",4", b"E16"), (b"G00", b"E16"), (b"\xff\xfe", b""),
        (b"qXfer:features:read:target.xml:,", b"E16"), (b"qXfer:features:read:other.xml:0,10", b""), (b"vRun;", b""),
    ],
)  # fmt: skip
def test_what_is_refused(packet: bytes, reply: bytes, tmp_path: Path) -> None:
    def script(client: Client) -> None:
        assert client.ask(packet) == reply

    session(script, tmp_path)


def test_monitor_commands(tmp_path: Path) -> None:
    def script(client: Client) -> None:
        replies = [client.ask(b"qRcmd," + each.hex().encode()) for each in (b"info", b"help", b"x", b"exceptions")]
        said = [bytes.fromhex(reply.decode()) for reply in replies]
        assert said[0] == b"CPU 0: executes, EL1 at 0x%x, 0 instructions, 0 cycles\n" % LOADED_AT
        assert said[1].startswith(b"monitor info")
        assert said[2].startswith(b"'x' is none of ours:\nmonitor info")
        assert said[3] == b"none\n"

    session(script, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_random_packets_do_no_harm(seed: int, tmp_path: Path) -> None:
    """Whatever is asked, the board comes to an end: by itself, by a limit, or because it was killed."""
    draw = random.Random(seed)
    begins = b"? g G p P m M X Z z H T c s C S D vCont; vCont? vKill qXfer:features:read:target.xml: qRcmd, q Q $ }"
    places = (b"m%x,10", b"Z0,%x,4", b"Z2,%x,8", b"p%x", b"c%x")
    letters = b"0123456789abcdef,;:=#$}*\x00\xff-"

    def script(client: Client) -> None:
        client.socket.setblocking(False)
        for _ in range(400):
            packet = draw.choice(begins.split()) + bytes(draw.choices(letters, k=draw.randrange(24)))
            if draw.random() < 0.5:
                packet = draw.choice(places) % draw.choice((ADDS, 4, 1 << 63))
            try:
                client.socket.send(b"$%b#00" % packet if draw.random() < 0.9 else packet + b"\x03")
                if draw.random() < 0.1:
                    client.socket.send(b"\x03")
                client.socket.recv(1 << 16)
            except BlockingIOError:
                pass
            except OSError:
                break

    assert session(script, tmp_path, COUNTS + "2: add x4, x4, #1\nb 2b\n").board.ended in (
        Ended.LIMIT, Ended.KILLED, Ended.OFF, Ended.NONE_ON, Ended.IDLE,
    )  # fmt: skip


def test_one_debugger_after_the_other(tmp_path: Path) -> None:
    """The second finds the board stopped where it was."""
    again = threading.Event()

    def script(client: Client) -> None:
        assert client.ask(b"Z0,%x,4" % ADDS) == b"OK"
        client.tell(b"c")
        assert client.hear() == b"T05thread:1;swbreak:;"
        client.socket.close()
        second = Client(str(tmp_path / "socket"))
        assert re.fullmatch(rb"T0.thread:1;", second.ask(b"?"))
        again.set()
        try:
            second.ask(b"k")
        except (Disconnected, ConnectionError):
            second.socket.close()

    booted = session(script, tmp_path, COUNTS + "2: b 2b\n", instructions=FOREVER)
    assert again.is_set()
    assert booted.board.ended is Ended.KILLED


@pytest.mark.parametrize("place", ["name", "70000", ""])
def test_places_that_are_none(place: str) -> None:
    with pytest.raises(Exception, match=f"--gdb {place}: a port"):
        GdbServer(place, lambda text: None)
