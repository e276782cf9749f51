"""Helpers of programs that are attached to functions: what these are called with, and what they return."""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi.bpf import ProgType
from perfcore.bpf.helpers.helper import Arg, helper
from perfcore.bpf.run import Call, Run

_TRACED = frozenset({ProgType.TRACING})


def _call(run: Run) -> Call:
    if run.call is None:
        raise LinuxError(EOPNOTSUPP, "the program is not attached to a function")
    return run.call


def _store(run: Run, address: int, value: int) -> int:
    run.memory.write(address, struct.pack("<Q", value & (1 << 64) - 1))
    return 0


@helper(183, Arg.CTX, Arg.ANYTHING, Arg.LONG, programs=_TRACED)
def get_func_arg(run: Run, ctx: int, n: int, value: int) -> int:
    """EOPNOTSUPP of one that the modelled kernel does not have."""
    call, index = _call(run), n & 0xFFFF_FFFF
    if index >= len(call.arguments):
        raise LinuxError(EINVAL, f"the function has {len(call.arguments)} arguments")
    if index in call.unknown:
        raise LinuxError(EOPNOTSUPP, f"argument {index} is not known")
    return _store(run, value, call.arguments[index])


@helper(184, Arg.CTX, Arg.LONG, programs=_TRACED)
def get_func_ret(run: Run, ctx: int, value: int) -> int:
    returned = _call(run).returned
    if returned is None:
        raise LinuxError(EOPNOTSUPP, "the program is run before the function has returned")
    return _store(run, value, returned)


@helper(185, Arg.CTX, programs=_TRACED)
def get_func_arg_cnt(run: Run, ctx: int) -> int:
    return len(_call(run).arguments)
