"""What a helper function is to the verifier: its number, arguments, result. linux/bpf.h, struct bpf_func_proto."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from perfcore.abi.bpf import ProgType
from perfcore.bpf.maps.map import Map


class Arg(Enum):
    """enum bpf_arg_type."""

    ANYTHING = auto()
    CTX = auto()
    MAP = auto()
    KEY = auto()  # of the map before it
    VALUE = auto()
    UNINIT_VALUE = auto()  # a value of the map is written there
    MEM = auto()  # as many bytes as the next argument says
    MEM_OR_NULL = auto()
    UNINIT_MEM = auto()  # they are written
    SIZE = auto()
    SIZE_OR_ZERO = auto()
    ALLOC_SIZE = auto()  # a constant: how much is returned
    RINGBUF_MEM = auto()  # is given back
    FUNC = auto()  # a function of the program
    CALLBACK_CTX = auto()  # what that is given: of the stack, or null
    CONST_STR = auto()  # in a map that nobody changes any more
    LONG = auto()  # where 8 bytes are written


class Returns(Enum):
    """enum bpf_return_type."""

    INTEGER = auto()
    VOID = auto()
    VALUE_OR_NULL = auto()
    RINGBUF_MEM_OR_NULL = auto()
    TASK = auto()  # a pointer to the task_struct of who executes


TRACING = frozenset(
    {ProgType.KPROBE, ProgType.TRACEPOINT, ProgType.PERF_EVENT, ProgType.RAW_TRACEPOINT, ProgType.TRACING}
)
ALL = TRACING | {ProgType.SOCKET_FILTER}


@dataclass(frozen=True, slots=True)
class Helper:
    """A row. `run` is called with the run of the program and the arguments' numbers."""

    number: int
    name: str
    args: tuple[Arg, ...]
    returns: Returns
    unchecked: int  # more registers that it is given, whatever they are
    gpl: bool
    programs: frozenset[ProgType]
    run: Callable[..., int]

    @property
    def calls_back(self) -> bool:
        return Arg.FUNC in self.args


class Memory(Protocol):
    """What the addresses of programs lead to."""

    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...


HELPERS: dict[int, Helper] = {}


def helper(
    number: int,
    *args: Arg,
    returns: Returns = Returns.INTEGER,
    unchecked: int = 0,
    gpl: bool = False,
    programs: frozenset[ProgType] = ALL,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a row: the function's name is the helper's."""

    def declare(run: Callable[..., int]) -> Callable[..., int]:
        assert number not in HELPERS, f"helper {number} is {HELPERS[number].name} already"
        HELPERS[number] = Helper(number, run.__name__, args, returns, unchecked, gpl, programs, run)
        return run

    return declare


def takes(row: Helper, map: Map) -> bool:
    """check_map_func_compatibility(): kinds of maps name the functions that are for them."""
    return row.name in map.helpers
