"""What perf_event_open refuses before it looks for the event's source, in Linux's order: perf_copy_attr and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from emulator.linux.errors import EINVAL, EOPNOTSUPP, EOVERFLOW, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import (
    PERF_FORMAT_MAX,
    PERF_SAMPLE_BRANCH_MAX,
    PERF_SAMPLE_MAX,
    AuxAction,
    BranchSampleType,
    SampleType,
)
from perfcore.events.settings import Settings


class Rule(NamedTuple):
    """EINVAL if `broken`; `why` says what would be right."""

    broken: Callable[[PerfEventAttr], object]
    why: str


def _samples(attr: PerfEventAttr, bit: SampleType) -> bool:
    return bool(attr.sample_type & bit)


RULES = (  # kernel/events/core.c, perf_copy_attr
    Rule(lambda a: a.reserved_1 or a.reserved_2 or a.aux_action & ~int(AuxAction.ALL), "reserved fields must be zero"),
    Rule(lambda a: a.sample_type & -PERF_SAMPLE_MAX, "sample_type has unknown bits"),
    Rule(lambda a: a.read_format & -PERF_FORMAT_MAX, "read_format has unknown bits"),
    Rule(
        lambda a: (
            _samples(a, SampleType.BRANCH_STACK)
            and (
                a.branch_sample_type & -PERF_SAMPLE_BRANCH_MAX
                or not a.branch_sample_type & ~int(BranchSampleType.PLM_ALL)
            )
        ),
        "branch_sample_type must name branches, with known bits",
    ),
    Rule(
        lambda a: _samples(a, SampleType.STACK_USER) and (a.sample_stack_user >= 0xFFFF or a.sample_stack_user % 8),
        "sample_stack_user must be a multiple of 8 below 65535",
    ),
    Rule(
        lambda a: _samples(a, SampleType.WEIGHT) and _samples(a, SampleType.WEIGHT_STRUCT),
        "WEIGHT and WEIGHT_STRUCT exclude each other",
    ),
    Rule(lambda a: a.inherit_thread and not a.inherit, "inherit_thread needs inherit"),
    Rule(lambda a: a.remove_on_exec and a.enable_on_exec, "remove_on_exec and enable_on_exec exclude each other"),
    Rule(lambda a: a.sigtrap and not a.remove_on_exec, "sigtrap needs remove_on_exec"),
)


def check_attr(attr: PerfEventAttr, settings: Settings, registers: int) -> None:
    """Raise EINVAL for what no event can have; fill in sample_max_stack, and the levels of
    sampled branches, as Linux does.

    `registers` are the bits of sample_regs_user that mean something.
    """
    for rule in RULES:
        if rule.broken(attr):
            raise LinuxError(EINVAL, f"perf_event_attr: {rule.why}")
    for mask in _register_masks(attr):
        if not mask or mask & ~registers:
            raise LinuxError(EINVAL, f"perf_event_attr: sampled registers {mask:#x} must be some of {registers:#x}")
    attr.sample_max_stack = attr.sample_max_stack or settings.max_stack
    if _samples(attr, SampleType.BRANCH_STACK) and not attr.branch_sample_type & BranchSampleType.PLM_ALL:
        for level, excluded in (
            (BranchSampleType.USER, attr.exclude_user),
            (BranchSampleType.KERNEL, attr.exclude_kernel),
            (BranchSampleType.HV, attr.exclude_hv),
        ):
            attr.branch_sample_type |= 0 if excluded else level


def _register_masks(attr: PerfEventAttr) -> Iterator[int]:
    if attr.sample_type & SampleType.REGS_USER:
        yield attr.sample_regs_user
    if attr.sample_type & SampleType.REGS_INTR:
        yield attr.sample_regs_intr


def check_vectors(attr: PerfEventAttr, vectors: int, *, sampled: bool) -> None:
    """PERF_PMU_CAP_EXTENDED_REGS: vector registers, whose bits `vectors` are, can be sampled where they are `sampled`:
    with the instruction's. EOPNOTSUPP."""
    if sampled and not attr.sample_regs_user & vectors:
        return
    for mask in _register_masks(attr):
        if mask & vectors:
            raise LinuxError(EOPNOTSUPP, f"perf_event_attr: sampled registers {mask:#x}: vectors are not sampled")


def check_rate(attr: PerfEventAttr, settings: Settings) -> None:
    """The frequency or period that the caller asks for."""
    if attr.freq:
        if attr.sample_freq > settings.sample_rate_hz:
            raise LinuxError(EINVAL, f"sample_freq: {attr.sample_freq} Hz is above {settings.sample_rate_hz} Hz")
    elif attr.sample_period >> 63:
        raise LinuxError(EINVAL, f"sample_period: {attr.sample_period:#x} does not fit in 63 bits")


def check_callchain(attr: PerfEventAttr, settings: Settings) -> None:
    if attr.sample_type & SampleType.CALLCHAIN and attr.sample_max_stack > settings.max_stack:
        raise LinuxError(EOVERFLOW, f"sample_max_stack: {attr.sample_max_stack} is above {settings.max_stack}")


def check_new_period(attr: PerfEventAttr, settings: Settings, value: int) -> None:
    """PERF_EVENT_IOC_PERIOD: EINVAL."""
    if not attr.sample_period or not value:
        raise LinuxError(EINVAL, f"IOC_PERIOD {value}: the event must be sampling, and the value not 0")
    if attr.freq and value > settings.sample_rate_hz:
        raise LinuxError(EINVAL, f"IOC_PERIOD {value} Hz is above {settings.sample_rate_hz} Hz")
    if not attr.freq and value >> 63:
        raise LinuxError(EINVAL, f"IOC_PERIOD {value:#x}: a period has 63 bits")
