"""Address filters of events that trace: what PERF_EVENT_IOC_SET_FILTER takes, and where that is in a task's memory."""

from __future__ import annotations

import pytest

from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.mm.mapping import MAP_PRIVATE, PROT_EXEC, PROT_READ, MappedFile, Mapping
from perfcore.events.address_filters import Action, AddressFilter, AddressRange, parse_address_filters, range_of

INODES = {"/bin/prog": 7, "/lib/a,b": 9}


def find_file(path: str) -> int:
    if path not in INODES:
        raise LinuxError(ENOENT, path)
    return INODES[path]


def test_all_that_is_said() -> None:
    text = "filter 0x1000/0x20@/bin/prog,stop 010/1@/bin/prog\nstart 5@/bin/prog  "
    assert parse_address_filters(text, of_task=True, find_file=find_file) == (
        AddressFilter(Action.FILTER, 0x1000, 0x20, 7),
        AddressFilter(Action.STOP, 8, 1, 7),
        AddressFilter(Action.START, 5, 0, 7),
    )


def test_none_takes_them_away() -> None:
    assert parse_address_filters(" ,", of_task=True, find_file=find_file) == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("trace 1/1@/bin/prog", EINVAL),
        ("filter", EINVAL),
        ("filter filter 1/1@/bin/prog", EINVAL),
        ("1/1@/bin/prog", EINVAL),
        ("filter 1@/bin/prog", EINVAL),  # a region has a size
        ("filter 1/0@/bin/prog", EINVAL),
        ("filter 1/x@/bin/prog", EINVAL),
        ("filter 1/18446744073709551616@/bin/prog", EINVAL),
        ("filter 1/1", EINVAL),  # the kernel's, which is excluded
        ("filter 1/1@/bin/other", ENOENT),
        ("filter 1/1@/lib/a,b", ENOENT),  # a comma ends a filter
    ],
)
def test_what_is_none(text: str, number: int) -> None:
    with pytest.raises(LinuxError) as raised:
        parse_address_filters(text, of_task=True, find_file=find_file)
    assert raised.value.code == number


def test_events_of_cpus_have_none_of_files() -> None:
    with pytest.raises(LinuxError) as raised:
        parse_address_filters("filter 1/1@/bin/prog", of_task=False, find_file=find_file)
    assert raised.value.code == EOPNOTSUPP


def mapped(inode: int, start: int, length: int, offset: int, protection: int = PROT_READ | PROT_EXEC) -> Mapping:
    return Mapping(start, start + length, protection, MAP_PRIVATE, offset, MappedFile("/bin/prog", 8, 1, inode))


def test_where_its_code_is() -> None:
    """The file's bytes 0x1000 to 0x3000 are executed at 0x401000; bytes before and behind are not mapped so."""
    mappings = [
        mapped(7, 0x400000, 0x1000, 0, PROT_READ),
        mapped(9, 0x300000, 0x9000, 0),
        mapped(7, 0x401000, 0x2000, 0x1000),
    ]

    def place(offset: int, size: int) -> AddressRange:
        return range_of(AddressFilter(Action.FILTER, offset, size, 7), mappings)

    assert place(0x1234, 0x10) == AddressRange(0x401234, 0x401244)
    assert place(0xF00, 0x200) == AddressRange(0x401000, 0x401100)
    assert place(0x2F00, 0x1000) == AddressRange(0x402F00, 0x403000)
    assert place(0x0, 0x1000) == place(0x3000, 1) == AddressRange(0, 0)
