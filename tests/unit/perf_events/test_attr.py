"""perf_event_attr: bytes and the kernel's size rules."""

import struct

import pytest

from perfcore.abi.attr import ATTR_SIZE, AttrTooBig, PerfEventAttr


def test_every_field_is_where_the_header_says():
    attr = PerfEventAttr(
        type=1, config=2, sample_period=3, sample_type=4, read_format=5, wakeup_events=7, bp_type=8, config1=9,
        config2=10, branch_sample_type=11, sample_regs_user=12, sample_stack_user=13, clockid=-14, sample_regs_intr=15,
        aux_watermark=16, sample_max_stack=17, aux_sample_size=18, sig_data=20, config3=21, disabled=1, sigtrap=1,
    )  # fmt: skip
    flags = 1 << 0 | 1 << 37
    expected = struct.pack(
        "<II4QQIIQQQQIiQIHHIIQQ", 1, 136, 2, 3, 4, 5, flags, 7, 8, 9, 10, 11, 12, 13, -14, 15, 16, 17, 0, 18, 0, 20, 21
    )
    assert attr.pack() == expected
    assert PerfEventAttr.unpack(expected) == attr


@pytest.mark.parametrize(
    ("name", "bit"),
    [
        ("disabled", 0), ("inherit", 1), ("pinned", 2), ("exclusive", 3), ("exclude_user", 4), ("exclude_kernel", 5),
        ("exclude_hv", 6), ("exclude_idle", 7), ("mmap", 8), ("comm", 9), ("freq", 10), ("inherit_stat", 11),
        ("enable_on_exec", 12), ("task", 13), ("watermark", 14), ("precise_ip", 15), ("mmap_data", 17),
        ("sample_id_all", 18), ("exclude_host", 19), ("exclude_guest", 20), ("exclude_callchain_kernel", 21),
        ("exclude_callchain_user", 22), ("mmap2", 23), ("comm_exec", 24), ("use_clockid", 25), ("context_switch", 26),
        ("write_backward", 27), ("namespaces", 28), ("ksymbol", 29), ("bpf_event", 30), ("aux_output", 31),
        ("cgroup", 32), ("text_poke", 33), ("build_id", 34), ("inherit_thread", 35), ("remove_on_exec", 36),
        ("sigtrap", 37),
    ],
)  # fmt: skip
def test_every_flag_has_its_bit(name, bit):
    assert struct.unpack_from("<Q", PerfEventAttr(**{name: 1}).pack(), 40) == (1 << bit,)


def test_a_flag_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="precise_ip: 4 does not fit in 2 bits"):
        PerfEventAttr(precise_ip=4).pack()


def test_size_zero_is_the_first_version():
    data = struct.pack("<II", 1, 0) + bytes(56)
    assert PerfEventAttr.unpack(data).size == 64


def test_a_larger_attr_is_taken_if_the_rest_is_zero():
    data = struct.pack("<II", 1, 144) + bytes(136)
    assert PerfEventAttr.unpack(data).size == 144
    with pytest.raises(AttrTooBig) as error:
        PerfEventAttr.unpack(data[:-1] + b"\1")
    assert error.value.size == ATTR_SIZE == 136


@pytest.mark.parametrize("size", [1, 63, 4097])
def test_sizes_that_cannot_be_are_too_big(size):
    with pytest.raises(AttrTooBig):
        PerfEventAttr.unpack(struct.pack("<II", 0, size) + bytes(5000))
