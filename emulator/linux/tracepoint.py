"""Tracepoint: something that happens in Linux, and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Tracepoint(Generic[P]):
    """One occurrence. True when someone listens, so that the arguments need not be made when nobody does."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: tuple[Callable[P, object], ...] = ()

    def subscribe(self, listener: Callable[P, object], first: bool = False) -> None:
        """Call `listener` at every occurrence, after those that subscribed before; or else before them."""
        self._listeners = (listener, *self._listeners) if first else (*self._listeners, listener)

    def unsubscribe(self, listener: Callable[P, object]) -> None:
        if listener not in self._listeners:
            raise ValueError(f"{listener} does not listen to this tracepoint")
        position = self._listeners.index(listener)
        self._listeners = self._listeners[:position] + self._listeners[position + 1 :]

    def clear(self) -> None:
        """Nobody listens any more."""
        self._listeners = ()

    def fire(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in self._listeners:
            listener(*args, **kwargs)

    def __bool__(self) -> bool:
        return bool(self._listeners)
