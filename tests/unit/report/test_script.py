"""perfemu script: what it refuses and how, filters, and tracepoints' print formats as C has them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from end_to_end.command import complaint, perfemu
from perfcore.perfdata.trace_formats import TraceField, TraceFormat
from perfemu.errors import UsageError
from perfemu.script.fields import FIELDS, Selection
from perfemu.script.print_format import printer
from synthetic_perf_data import Recording, event

FIELDS_OF_DATA = {
    field.name: field
    for field in (
        TraceField("int", "number", 0, 4, True, False),
        TraceField("u64", "flags", 8, 8, False, False),
        TraceField("char", "comm", 16, 8, False, True),
        TraceField("char", "name", 24, 4, False, True, "__data_loc"),
        TraceField("unsigned long", "args", 32, 16, False, True),
    )
}
# name lies behind the fixed part, at 48: "file" and its NUL
DATA = struct.pack("<i4xQ8sI4xQQ", -5, 0x13, b"sh", 5 << 16 | 48, 7, 0xFFFF_FFFF_FFFF_FFFF) + b"file\0"


@pytest.mark.parametrize(
    ("print_format", "text"),
    [
        ('"number=%d flags=%#llx", REC->number, REC->flags', "number=-5 flags=0x13"),
        ('"%u %lu", REC->number, REC->number', "4294967291 4294967291"),  # numbers are read without a sign
        ('"%s:%s|%-6s|", REC->comm, __get_str(name), REC->comm', "sh:file|sh    |"),
        ('"%ld %ld", REC->args[0], REC->args[1]', "7 -1"),
        ('"%s", __print_flags(REC->flags, "|", { 0x1, "A" }, { 0x2, "B" })', "A|B|0x10"),
        ('"%s", __print_symbolic(REC->flags, { 1, "A" }, { 19, "B" })', "B"),
        ('"%s", __print_symbolic(REC->flags, { 1, "A" })', "0x13"),
        ('"%d,%d", ((unsigned int) ((REC->flags) >> 4)), ((unsigned int) ((REC->flags) & ((1U << 4) - 1)))', "1,3"),
        ('"%s" " and" "%s", REC->number < 0 ? "" : "no", REC->flags ? "yes" : "no"', "no andyes"),
        ('"%d", (int)REC->number < 0', "1"),
        ('"100%% %08lx %p %p", ((unsigned long)(REC->flags)), (void *)REC->flags, 0', "100% 00000013 0x13 (nil)"),
        ('"%.*s|%c", 1, REC->comm, REC->args[0] + 58', "s|A"),
        ('"%d", sizeof(u64) * 2 + -1', "15"),
        ('"%s", __print_hex(REC->comm, 2)', "73 68"),
        (
            '"%d", of_the_future(REC->number)',
            "[FAILED TO PARSE] number=-5 flags=0x13 comm=sh name=file "
            "args=ARRAY[07, 00, 00, 00, 00, 00, 00, 00, ff, ff, ff, ff, ff, ff, ff, ff]",
        ),
    ],
)
def test_print_formats_are_c(print_format: str, text: str) -> None:
    assert printer(TraceFormat(1, "event", FIELDS_OF_DATA, print_format))(DATA) == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("comm,smy",), "there is no field 'smy'; did you mean sym"),
        (("brstackinsn",), "'brstackinsn' is not modelled yet"),
        (("comm,+ip",), "either named, or added by + and removed by -"),
        (("hw:trace",), "hardware events have no 'trace'"),
        (("foo:ip",), "'foo' is no type of events; known are hw, sw, trace, raw"),
        (("",), "no field is named"),
    ],
)
def test_fields_that_cannot_be(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as problem:
        Selection(words)
    assert said in problem.value.message


def test_every_field_can_be_asked_for() -> None:
    names = [field.name for field in FIELDS if field.name != "trace"]
    assert Selection((",".join(names),)).fields_of(0, (1 << 25) - 1, "cycles") == frozenset(names)


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    made = Recording([event()])
    made.sample(0x1000)
    data = made.write(tmp_path / "data")
    for options, said in (
        (("-i", tmp_path / "none"), "cannot read"),
        (("-i", data, "-F", "cpu"), "script -F cpu: samples of instructions:u have none"),
        (("-i", data, "-F", "comm,symoff"), "script -F symoff needs sym"),
        (("-i", data, "-F", "trace:trace"), "the file has no tracepoint events"),
        (("-i", data, "-C", "0"), "does not say on which CPU a sample was (record --sample-cpu)"),
        (("-i", data, "--brstackinsn"), "unknown option"),
        (("-i", data, "--call-trace"), "is not modelled yet"),
        (("-i", data, "-s", "x.py"), "is not modelled yet"),
        (("-i", data, "x.py"), "-i names a file"),
    ):
        assert said in complaint(perfemu("script", *options))


def test_filters_choose_samples(tmp_path: Path) -> None:
    made = Recording([event()])
    made.sample(0x1000, tid=7)
    made.sample(0x2000, tid=8)
    data = made.write(tmp_path / "data")

    def addresses(*options: str) -> list[str]:
        return perfemu("script", "-i", data, "-F", "ip", *options).stdout.decode().split()

    assert addresses() == ["1000", "2000"]
    assert addresses("--tid", "8") == ["2000"]
    assert addresses("--time", "100.000002,") == ["2000"]  # samples are a microsecond apart, from 100.000001 on
    assert addresses("--comms", ":7") == ["1000"]
    assert addresses("-S", "main") == []
