"""Core layers: a core file on top of its base, ``--set`` changes on top of both; who said what is remembered."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.core_file.keys import Key, Kind
from emulator.core_file.schema import Path as KeyPath
from emulator.core_file.schema import children_of, table_of

DIRECTORY = Path(__file__).parent.parent / "cores"
SUFFIX = ".toml"
_LONGEST_CHAIN = 16  # files based on files
_DEEPEST = 5  # ops.CLASS.width.N.key
_FEW = 12  # names that an error lists

Tables = dict[str, Any]  # TOML's


class CoreFileError(ValueError):
    """One line for the user."""


@dataclass(slots=True)
class Layers:
    """Tables as they are put on top of each other, and who said what."""

    data: Tables = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    given: dict[KeyPath, object] = field(default_factory=dict)  # values that have been replaced, as they were written

    def add(self, layer: Mapping[str, object], origin: str, path: KeyPath = ()) -> None:
        """Tables are merged, values replaced."""
        target = self.table(path)
        for name, value in layer.items():
            here = (*path, name)
            if len(here) > _DEEPEST:
                raise CoreFileError(f"{origin}: {dotted(here)}: unknown key: no table is so deep")
            self.origins[here] = origin
            if isinstance(value, dict):
                if not isinstance(target.get(name), dict):
                    target[name] = {}
                self.add(value, origin, here)
            else:
                target[name] = value

    def table(self, path: KeyPath) -> Tables:
        table = self.data
        for name in path:
            inner = table[name]
            assert isinstance(inner, dict)
            table = inner
        return table

    def origin(self, path: KeyPath) -> str:
        """Who said this key, or the table around it."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, self.origins[("name",)])

    def error(self, path: KeyPath, right: str) -> CoreFileError:
        value = self.given.get(path, self.value(path))
        given = "" if value is None or isinstance(value, dict) else f" = {shown(value)}"
        origin = self.origin(path)
        if origin.startswith("--set ") and origin.partition("=")[0] == f"--set {'.'.join(path)}":
            return CoreFileError(f"{origin}: {right}")
        return CoreFileError(f"{origin}: {dotted(path)}{given}: {right}")

    def value(self, path: KeyPath) -> object:
        found: object = self.data
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


def names() -> tuple[str, ...]:
    """The cores that come with the emulator."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in DIRECTORY.glob(f"*{SUFFIX}")))


def read_layers(core: str, changes: Sequence[str]) -> Layers:
    """The core of this name or in this file, and what it is based on, with ``KEY=VALUE`` changes; not checked yet."""
    layers = Layers()
    for name, path, data in _chain(core):
        _add_file(layers, name, path, data)
    for change in changes:
        _add_change(layers, change)
    return layers


# ---- files


def is_file(core: str) -> bool:
    """Whether ``--core`` means a file of the user's."""
    return "/" in core or core.endswith(SUFFIX)


def _chain(core: str) -> list[tuple[str, Path, Tables]]:
    """The file and what it is based on, the deepest base first: (name, path, contents)."""
    chain: list[tuple[str, Path, Tables]] = []
    seen: list[tuple[Path, str]] = []
    wanted: str | None = core
    directory, said = Path(), f"--core {core}"
    while wanted is not None:
        path = _find(wanted, directory, said)
        name = path.name.removesuffix(SUFFIX)
        real = path.resolve()
        if any(real == earlier for earlier, _ in seen):
            cycle = [name for _, name in seen[[earlier for earlier, _ in seen].index(real) :]]
            raise CoreFileError(f"{said}: cyclic: {' -> '.join((*cycle, name))}")
        if len(seen) == _LONGEST_CHAIN:
            raise CoreFileError(f"{said}: more than {_LONGEST_CHAIN} files based on each other")
        seen.append((real, name))
        data = _read(path)
        base = data.get("base")
        if base is not None and not isinstance(base, str):
            raise CoreFileError(f"{_display(path)}: base = {shown(base)}: want the name or path of a core file")
        chain.insert(0, (name, path, data))
        wanted, directory, said = base, path.parent, f"{_display(path)}: base = {shown(base)}"
    return chain


def _find(core: str, directory: Path, said: str) -> Path:
    if is_file(core) and "\0" not in core:
        return directory / core
    if core in names():
        return DIRECTORY / f"{core}{SUFFIX}"
    raise CoreFileError(f"{said}: no such core; there is {some(core, names())}")


def _display(path: Path) -> str:
    """Short for ours, as the user wrote it for theirs."""
    return f"cores/{path.name}" if path.parent == DIRECTORY else str(path)


def _read(path: Path) -> Tables:
    try:
        text = path.read_bytes().decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise CoreFileError(f"{_display(path)}: {error.strerror}; want a core file (TOML)") from None
    except UnicodeDecodeError:
        raise CoreFileError(f"{_display(path)}: is not UTF-8; want a core file (TOML)") from None
    except RecursionError:
        raise CoreFileError(f"{_display(path)}: tables or lists within each other, too many") from None
    except ValueError as error:  # TOMLDecodeError, and an integer of thousands of digits
        raise CoreFileError(f"{_display(path)}: is not TOML: {error}") from None


def _add_file(layers: Layers, name: str, path: Path, data: Tables) -> None:
    display = _display(path)
    if layers.data:  # based on what is there
        without = data.get("without", [])
        if not isinstance(without, list) or not all(isinstance(each, str) for each in without):
            raise CoreFileError(f"{display}: without = {shown(without)}: want a list of tables of the base")
        _remove(layers, without, f"{display}: without")
        changed = f"not validated: {layers.data.get('name')} with changes"
        data = {"name": name, "validated": changed, **data}
    elif "without" in data:
        raise CoreFileError(f"{display}: without = {shown(data['without'])}: there is no base to take from")
    layers.add(data, display)
    layers.origins.setdefault(("name",), display)
    layers.data.pop("base", None)
    layers.data.pop("without", None)


def _remove(layers: Layers, tables: Sequence[str], where: str) -> None:
    for name in tables:
        if not isinstance(layers.data.get(name), dict):
            there = [each for each, value in layers.data.items() if isinstance(value, dict)]
            raise CoreFileError(f"{where} {shown(name)}: no such table; there is {', '.join(there)}")
        del layers.data[name]


# ---- changes on the command line


def _add_change(layers: Layers, change: str) -> None:
    dotted, equals, text = change.partition("=")
    said = f"--set {change}"
    if not change.isprintable():
        raise CoreFileError(f"--set {shown(change)}: want text that can be printed")
    if not equals or not dotted:
        raise CoreFileError(f"{said}: want KEY=VALUE, such as l1d.size=64KiB")
    path = tuple(dotted.split("."))
    if path == ("without",):
        _remove(layers, _listed(text), "--set without")
        return
    table = table_of(path[:-1])
    key = table.key(path[-1]) if table is not None else None
    if key is None or path[0] in ("base", "name"):
        raise CoreFileError(f"{said}: {unknown(path)}")
    for depth in range(1, len(path)):
        if not isinstance(layers.value(path[:depth]), dict):
            layers.origins[path[:depth]] = said
    value = _parsed(key, text)
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    origins = {known: layers.origins[known] for known in layers.origins}
    layers.add(value, said)
    layers.origins.update({known: origin for known, origin in origins.items() if known != path})


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")] if text else []


def _parsed(key: Key, text: str) -> object:
    """As the key's kind; what is not of that kind stays text, and is refused with all others."""
    if key.kind is Kind.TEXTS:
        return _listed(text)
    if key.kind is Kind.BOOLEAN and text in ("true", "false"):
        return text == "true"
    if key.kind is Kind.REAL and re.fullmatch(r"\d+\.\d+", text, re.ASCII):
        return float(text)
    if key.kind in (Kind.INTEGER, Kind.REAL, Kind.SIZE) and len(text) < 40:
        try:
            return int(text, 0)
        except ValueError:
            return text
    return text


def unknown(path: KeyPath) -> str:
    table = table_of(path[:-1])
    known = [key.name for key in table.keys] if table is not None else []
    known += [name for name in children_of(path[:-1]) if name != "*"]
    where = f"[{'.'.join(path[:-1])}]" if len(path) > 1 else "a core file"
    return f"unknown key: {f'{where} has {some(path[-1], known)}' if known else f'there is no table {where}'}"


def some(name: str, known: Sequence[str]) -> str:
    """What there is instead of `name`: what is near, or a part of the list if it is long."""
    near = difflib.get_close_matches(name, known, n=1)
    if len(known) <= _FEW:
        return ", ".join(known) + (f"; did you mean {near[0]}?" if near else "")
    return f"{near[0]} among others; did you mean that?" if near else f"{', '.join(known[:_FEW])} ... (docs/cores.md)"


def dotted(path: KeyPath) -> str:
    """As TOML writes it: names with dots or blanks in them are quoted."""
    return ".".join(name if re.fullmatch(r"[\w-]+", name, re.ASCII) else shown(name) for name in path)


def shown(value: object) -> str:
    """As TOML writes it, more or less; never long, never with control characters."""
    text = json.dumps(value, ensure_ascii=not str(value).isprintable(), default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
