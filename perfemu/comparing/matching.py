"""matching: which module and which function of the new build is which of the old one, where names have changed."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from perfemu.comparing.measured import UNKNOWN, Function, Measured

_VERSION = re.compile(r"[-.]?\d+(\.\d+)*")
_CLONE = re.compile(r"(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)*)+$")
Item = TypeVar("Item", bound=Hashable)
_LEAST_ALIKE = 0.6  # of two names of functions of one size: difflib's ratio


def matched_modules(old: Measured, new: Measured) -> dict[str, str]:
    """New module -> the old one that it replaces: the other program, or the library of another version."""
    gone, come = _modules(old) - _modules(new), _modules(new) - _modules(old)
    pairs = {}
    old_programs, new_programs = gone & old.programs, come & new.programs
    if len(old_programs) == len(new_programs) == 1:
        pairs[new_programs.pop()] = old_programs.pop()
    pairs.update(_unique_pairs(gone - set(pairs.values()), come - pairs.keys(), _without_version))
    rest_gone, rest_come = gone - set(pairs.values()), come - pairs.keys()
    if len(rest_gone) == len(rest_come) == 1 and _have_functions_in_common(old, new, *rest_gone, *rest_come):
        pairs[rest_come.pop()] = rest_gone.pop()
    return pairs


def _have_functions_in_common(old: Measured, new: Measured, old_module: str, new_module: str) -> bool:
    return bool(_names_in(old, old_module) & _names_in(new, new_module) - {UNKNOWN})


def _names_in(of: Measured, module: str) -> set[str]:
    return {function.name for event in of.events.values() for function in event.functions if function.module == module}


def _modules(of: Measured) -> set[str]:
    return {function.module for event in of.events.values() for function in event.functions}


def _without_version(module: str) -> str:
    return _VERSION.sub("", module)


def matched_functions(old: Measured, new: Measured, modules: dict[str, str]) -> dict[Function, Function]:
    """New function -> the old one that it replaces; only those whose names differ beyond their modules' names.

    First other clones of one function, then other signatures of one name, then names alike of functions of one size.
    """
    old_functions = {function for event in old.events.values() for function in event.functions}
    new_functions = {function for event in new.events.values() for function in event.functions}
    same = {
        Function(modules.get(function.module, function.module), function.name): function for function in new_functions
    }
    gone = {function for function in old_functions if function not in same and function.name != UNKNOWN}
    come = {function for key, function in same.items() if key not in old_functions and function.name != UNKNOWN}
    pairs: dict[Function, Function] = {}
    for identity in (_without_clone, _without_signature):
        for module in sorted({function.module for function in come}):
            of_new = (function for function in come - pairs.keys() if function.module == module)
            before = modules.get(module, module)
            of_old = (function for function in gone - set(pairs.values()) if function.module == before)
            pairs.update(_unique_pairs(of_old, of_new, identity))
    for function in sorted(come - pairs.keys()):
        module, size = modules.get(function.module, function.module), new.sizes.get(function, 0)
        left = gone - set(pairs.values())
        alike = [other for other in sorted(left) if other.module == module and old.sizes.get(other, 0) == size > 0]
        best = max(alike, key=lambda other: _likeness(other.name, function.name), default=None)
        if best is not None and _likeness(best.name, function.name) >= _LEAST_ALIKE:
            pairs[function] = best
    return pairs


def _without_clone(function: Function) -> str:
    return _CLONE.sub("", function.name)


def _without_signature(function: Function) -> str:
    return _without_clone(function).partition("(")[0].partition("<")[0]


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _unique_pairs(gone: Iterable[Item], come: Iterable[Item], identity: Callable[[Item], str]) -> dict[Item, Item]:
    """Those of each side that alone have some identity there."""
    olds, news = _by_identity(gone, identity), _by_identity(come, identity)
    return {news[key][0]: olds[key][0] for key in news if key in olds and len(news[key]) == len(olds[key]) == 1}


def _by_identity(items: Iterable[Item], identity: Callable[[Item], str]) -> dict[str, list[Item]]:
    found: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        found[identity(item)].append(item)
    return found
