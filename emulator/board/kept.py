"""What parts of a machine keep, as plain data, so that the machine goes on in another process.

A part names its fields once, in `kept`: numbers, bytes, lists, tuples and dicts of them, and other parts. What its
constructor makes of the configuration is not among them: what is restored meets a part that was made equal.

What is restored may come from anybody's file: each field has to be of the kind and size that it has in the part that
was made, with numbers of WORDS, or of its range in the part's `kept_ranges`. Those in `kept_growing` have any size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Plain = Any  # what JSON can say

WORDS = range(1 << 64)
_SIMPLE = (int, bool, str, type(None))


class NotKept(Exception):
    """A part of the machine has no state that can be kept: says which."""


class WrongState(Exception):
    """That is not what these parts have kept."""


def state_of(part: object) -> Plain:
    """Raises NotKept."""
    return {name: _plain(getattr(part, name), f"{type(part).__name__}.{name}") for name in _kept(part)}


def restore(part: object, state: Plain) -> None:
    """Fields that a part shares with others stay the same objects. Raises WrongState."""
    names = _kept(part)
    if not isinstance(state, dict) or set(state) != set(names):
        raise WrongState(type(part).__name__)
    for name in names:
        _restore_field(part, name, state[name])


def _kept(part: object) -> tuple[str, ...]:
    names = getattr(type(part), "kept", None)
    if names is None:
        raise NotKept(f"{type(part).__name__} has no state that can be kept")
    assert isinstance(names, tuple), "kept: names of fields"
    return names


def _plain(value: object, where: str) -> Plain:
    """Collections are lists with their kind in front."""
    if isinstance(value, _SIMPLE):
        return value
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, value.hex()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_plain(each, where) for each in value)]
    if isinstance(value, dict):
        return ["dict", _plain(list(value), where), _plain(list(value.values()), where)]
    if hasattr(type(value), "kept"):
        return state_of(value)
    raise NotKept(f"{where} is a {type(value).__name__}")


def _restore_field(part: object, name: str, state: Plain) -> None:
    now, where = getattr(part, name), f"{type(part).__name__}.{name}"
    if hasattr(type(now), "kept"):
        restore(now, state)
    elif isinstance(now, (list, tuple)) and now and hasattr(type(now[0]), "kept"):
        if not isinstance(state, list) or len(state) != len(now) + 1:
            raise WrongState(where)
        for each, its in zip(now, state[1:], strict=True):
            restore(each, its)
    else:
        value = _value(state, where)
        numbers = getattr(part, "kept_ranges", {}).get(name, WORDS)
        if not _is_like(value, now, numbers, grows=name in getattr(part, "kept_growing", ())):
            raise WrongState(where)
        try:
            _put(part, name, now, value)
        except ValueError as problem:  # of a property that looks closer
            raise WrongState(f"{where}: {problem}") from None


def _is_like(value: object, now: object, numbers: range, *, grows: bool = False) -> bool:
    """Whether what is there now could be that: of its kind and size, with the same keys, and numbers of the range.

    What is None now may be a number. `grows`: of any size, with items that are numbers.
    """
    if now is None or type(now) is int:
        return (now is None and value is None) or (type(value) is int and value in numbers)
    if isinstance(now, int) and type(now) is not bool:  # an enumeration's
        return type(value) is int and value in numbers
    if type(value) is not type(now):
        return False
    if isinstance(now, (list, tuple)) and isinstance(value, (list, tuple)):
        if grows:
            return all(_is_like(each, 0, numbers) for each in value)
        return len(value) == len(now) and all(map(partial(_is_like, numbers=numbers), value, now))
    if isinstance(now, dict) and isinstance(value, dict):
        return value.keys() == now.keys() and all(_is_like(value[key], now[key], numbers) for key in now)
    return grows or not isinstance(now, (bytes, bytearray)) or len(now) == len(value)  # type: ignore[arg-type]


def _put(part: object, name: str, now: object, value: object) -> None:
    if isinstance(now, (list, bytearray)) and isinstance(value, type(now)):
        now[:] = value
    elif isinstance(now, dict) and isinstance(value, dict):
        now.clear()
        now.update(value)
    else:
        setattr(part, name, value)


def _value(state: Plain, where: str) -> object:
    if isinstance(state, _SIMPLE):
        return state
    try:
        kind, *items = state
        return _COLLECTIONS[kind]([item if kind in _TEXTS else _value(item, where) for item in items])
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        raise WrongState(where) from None


_COLLECTIONS: Mapping[str, Callable[[list[Any]], object]] = {
    "bytes": lambda items: bytes.fromhex(items[0]),
    "bytearray": lambda items: bytearray.fromhex(items[0]),
    "list": list,
    "tuple": tuple,
    "dict": lambda items: dict(zip(*items, strict=True)),
}
_TEXTS = ("bytes", "bytearray")  # whose items are hexadecimal digits
