"""The ring buffer: layout, wrapping, loss, wakeups."""

import struct
from random import Random

import pytest

from emulator.linux.mm.mapping import PAGE_SIZE
from perfcore.abi.records import Lost
from perfcore.events.ring_buffer import RingBuffer, Written


class Source:
    def lost_record(self, lost):
        return Lost(77, lost).encode()


def a_record(size, fill=0xAB):
    return struct.pack("<IHH", 9, 2, size) + bytes([fill]) * (size - 8)


def test_the_header_page_is_linux_own():
    buffer = RingBuffer.allocate(8)
    page = bytes(buffer.page)
    assert struct.unpack_from("<Q", page, 40) == (2,)  # cap_bit0_is_deprecated
    assert struct.unpack_from("<I", page, 72) == (96,)  # size: where the reserved part begins
    assert struct.unpack_from("<4Q", page, 1024) == (0, 0, PAGE_SIZE, 8 * PAGE_SIZE)  # head, tail, offset, size
    buffer.write(a_record(48), Source())
    assert struct.unpack_from("<Q", buffer.page, 1024) == (48,)


@pytest.mark.parametrize("pages", [3, 5, 17])
def test_data_pages_are_a_power_of_two(pages):
    with pytest.raises(ValueError, match=r"1 \+ 2\*\*n pages"):
        RingBuffer.allocate(pages)


def test_a_record_that_wraps_is_drained_whole():
    buffer = RingBuffer.allocate(1)
    for number in range(1000):  # 1000 * 120 bytes: 29 times around 4096
        record = a_record(120, number % 256)
        assert buffer.write(record, Source()) != Written.LOST
        assert buffer.drain() == record
    assert struct.unpack_from("<2Q", buffer.page, 1024) == (120_000, 120_000)


def test_a_full_buffer_loses_and_says_so_when_there_is_room_again():
    buffer = RingBuffer.allocate(1)
    written = [buffer.write(a_record(512), Source()) for _ in range(10)]
    # one byte stays free, so 7 of 512 fit into 4096; 3 are lost
    assert [one != Written.LOST for one in written] == [True] * 7 + [False] * 3
    assert len(buffer.drain()) == 7 * 512
    buffer.write(a_record(64), Source())
    assert buffer.drain() == struct.pack("<IHHQQ", 2, 0, 24, 77, 3) + a_record(64)


def test_overwriting_never_loses():
    buffer = RingBuffer.allocate(1, overwrite=True)
    assert all(buffer.write(a_record(512), Source()) != Written.LOST for _ in range(100))


def test_the_reader_is_woken_when_half_is_full_and_can_drain_at_once():
    buffer = RingBuffer.allocate(1)
    taken = []
    buffer.on_wakeup = lambda: taken.append(len(buffer.drain()))
    for _ in range(100):
        assert buffer.write(a_record(256), Source()) != Written.LOST
    # woken when the head is more than 2048 beyond the last: at 9 * 256, then at multiples of 2048 passed
    assert taken[0] == 9 * 256
    assert sum(taken) + len(buffer.drain()) == 100 * 256


def test_a_watermark_and_a_number_of_events_wake_the_reader():
    buffer = RingBuffer.allocate(1, watermark=100)
    assert [buffer.write(a_record(40), Source()) for _ in range(4)] == [1, 1, 2, 1]  # at 120 > 100
    buffer = RingBuffer.allocate(4)
    assert [buffer.write(a_record(40), Source(), wakeup_events=2) for _ in range(4)] == [1, 2, 1, 2]
    assert buffer.poll_ready


def test_a_paused_buffer_loses():
    buffer = RingBuffer.allocate(1)
    buffer.paused = True
    assert buffer.write(a_record(40), Source()) == Written.LOST
    buffer.paused = False
    buffer.write(a_record(40), Source())
    assert buffer.drain()[:24] == Lost(77, 1).encode()


def test_the_first_page_alone_takes_no_records():
    buffer = RingBuffer(memoryview(bytearray(PAGE_SIZE)))
    assert buffer.write(a_record(40), Source()) == Written.LOST
    assert buffer.lost == 0


def test_the_newest_records_are_whole_and_come_once():
    """Written backward over what was there: 34 of 120 bytes fit into 4096, and of the 35th its end has been lost."""
    buffer = RingBuffer.allocate(1, overwrite=True, backward=True)
    records = [a_record(120, number) for number in range(100)]
    assert buffer.newest() == []
    for record in records[:2]:
        buffer.write(record, Source())
    assert buffer.newest() == records[:2]  # oldest first
    for record in records[2:]:
        buffer.write(record, Source())
    assert buffer.newest() == records[-34:]
    assert buffer.newest() == []
    buffer.write(records[0], Source())
    assert buffer.newest() == [records[0]]


def test_a_record_longer_than_the_buffer_is_lost_whatever_is_overwritten():
    buffer = RingBuffer.allocate(1, overwrite=True)
    assert buffer.write(a_record(4104), Source()) == Written.LOST
    assert buffer.write(a_record(4072), Source()) == Written.WAKEUP  # with the 24 bytes that say so: all of it
    assert bytes(buffer.data) == Lost(77, 1).encode() + a_record(4072)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"overwrite": True, "backward": True}])
@pytest.mark.parametrize("wakeup_events", [0, 3])
def test_records_together_are_as_one_by_one(seed, options, wakeup_events):
    """Whoever is woken, and however much the reader takes meanwhile."""
    random = Random(seed)
    one, together = (RingBuffer.allocate(1, watermark=1000, **options) for _ in range(2))
    for _ in range(60):
        records = [a_record(random.randrange(16, 200, 8), random.randrange(256)) for _ in range(random.randrange(12))]
        written = [one.write(record, Source(), wakeup_events) for record in records]
        expected = written.count(Written.LOST), Written.WAKEUP in written
        assert together.write_all(records, Source(), wakeup_events) == expected
        assert one.poll_ready == together.poll_ready
        if random.randrange(4) == 0:
            assert one.newest() == together.newest() if options else one.drain() == together.drain()
        assert bytes(one.page) == bytes(together.page)
        assert bytes(one.data) == bytes(together.data)
