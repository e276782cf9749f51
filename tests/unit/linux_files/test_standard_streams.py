"""The guest's descriptors 0, 1 and 2 are the user's: a file, a pipe or a terminal."""

from __future__ import annotations

import os
import pty
import struct
import termios
import threading
import time

import pytest

from calls import read_of
from emulator.linux.errors import EACCES, EFAULT, ENOTTY, EPIPE, ESPIPE, LinuxError
from emulator.linux.fs.destination import KernelBuffer, UserBuffer
from emulator.linux.fs.file import O_RDONLY, O_RDWR, O_WRONLY


@pytest.fixture
def descriptors():
    """Host descriptors to close afterwards."""
    opened: list[int] = []
    yield opened
    for descriptor in opened:
        os.close(descriptor)


def test_a_file_keeps_its_position_with_the_user(guest, descriptors):
    (guest.elsewhere / "input").write_bytes(b"0123456789")
    descriptors.append(host := os.open(guest.elsewhere / "input", os.O_RDONLY))
    stream = guest.tree.standard_stream(host)
    assert read_of(stream, guest.task, 4) == b"0123"
    assert os.lseek(host, 0, os.SEEK_CUR) == 4
    assert stream.seek(-2, 2) == 8
    buffer = KernelBuffer(2)
    assert stream.read_at(guest.task, 1, buffer) == 2
    assert buffer.data == b"12"
    assert stream.attributes().size == 10
    assert stream.path == str(guest.elsewhere / "input")


def test_a_pipe(guest, descriptors):
    reading, writing = os.pipe()
    descriptors.append(writing)
    stream = guest.tree.standard_stream(writing)
    assert stream.write(guest.task, b"abc") == 3
    assert os.read(reading, 10) == b"abc"
    assert stream.attributes().mode >> 12 == 1
    with pytest.raises(LinuxError) as caught:
        stream.seek(0, 0)
    assert caught.value.code == ESPIPE
    with pytest.raises(LinuxError) as caught:
        stream.ioctl(guest.task, 0x5401, 0x4000)
    assert caught.value.code == ENOTTY
    os.close(reading)
    with pytest.raises(LinuxError) as caught:
        stream.write(guest.task, b"abc")
    assert caught.value.code == EPIPE


def test_all_of_a_write_goes_out_even_if_the_hosts_pipe_does_not_wait(guest, descriptors):
    reading, writing = os.pipe()
    descriptors += [reading, writing]
    os.set_blocking(writing, False)
    stream = guest.tree.standard_stream(writing)
    assert stream.write(guest.task, bytes(60_000)) == 60_000


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_what_does_not_arrive_is_read_next(guest, descriptors, kind):
    if kind == "pipe":
        reading, writing = os.pipe()
        os.write(writing, b"0123456789")
        os.close(writing)
    else:
        (guest.elsewhere / "input").write_bytes(b"0123456789")
        reading = os.open(guest.elsewhere / "input", os.O_RDONLY)
    descriptors.append(reading)
    stream = guest.tree.standard_stream(reading)
    memory = guest.task.mm
    end = memory.BASE + len(memory.data)
    with pytest.raises(LinuxError) as caught:
        stream.read(guest.task, UserBuffer(memory, end, 6))
    assert caught.value.code == EFAULT
    assert stream.read(guest.task, UserBuffer(memory, end - 4, 6)) == 4
    assert memory.read(end - 4, 4) == b"0123"
    assert read_of(stream.again(O_RDONLY), guest.task, 20)[:2] == b"45"


def test_a_terminal_is_the_users(guest, descriptors):
    controller, terminal = pty.openpty()
    descriptors += [controller, terminal]
    termios.tcsetwinsize(terminal, (33, 99))
    stream = guest.tree.standard_stream(terminal)
    assert stream.is_terminal
    assert stream.ioctl(guest.task, 0x5413, 0x4000) == 0  # TIOCGWINSZ
    assert struct.unpack("<4H", guest.task.mm.read(0x4000, 8))[:2] == (33, 99)
    assert stream.ioctl(guest.task, 0x5401, 0x4000) == 0  # TCGETS
    with pytest.raises(LinuxError) as caught:
        stream.ioctl(guest.task, 0x5412, 0x4000)  # TIOCSTI: nothing types for the user
    assert caught.value.code == ENOTTY
    attributes = stream.attributes()
    assert (attributes.mode, attributes.special) == (0o20620, (136, 0))


def test_opening_a_stream_again_gives_no_more_rights(guest, descriptors):
    (guest.elsewhere / "input").write_bytes(b"content")
    descriptors.append(host := os.open(guest.elsewhere / "input", os.O_RDONLY))
    stream = guest.tree.standard_stream(host)
    assert read_of(stream.again(O_RDONLY), guest.task, 10) == b"content"
    for flags in (O_WRONLY, O_RDWR):
        with pytest.raises(LinuxError) as caught:
            stream.again(flags)
        assert caught.value.code == EACCES


@pytest.mark.parametrize(("interactive", "reads"), [(False, [b"abcdef", b"gh", b""]), (True, [b"abc", b"defgh", b""])])
def test_a_pipe_gives_the_same_reads_however_it_delivers_unless_in_a_dialogue(guest, descriptors, interactive, reads):
    reading, writing = os.pipe()
    descriptors.append(reading)
    stream = guest.tree.standard_stream(reading, interactive)

    def write_later() -> None:
        time.sleep(0.1)
        os.write(writing, b"defgh")
        os.close(writing)

    writer = threading.Thread(target=write_later)
    os.write(writing, b"abc")
    writer.start()
    first = read_of(stream, guest.task, 6)
    writer.join()
    assert [first, read_of(stream, guest.task, 6), read_of(stream, guest.task, 6)] == reads
