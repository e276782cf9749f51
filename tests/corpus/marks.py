"""The `broken` keys of the table, written from a run: REWRITE_BROKEN=1. A human reads the diff, and says why better."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from corpus.cases import TABLES, Case

KEY = re.compile(r"^broken\s*=.*\n", re.MULTILINE)
Reasons = Mapping[str, str | None]  # ISA -> why a case is broken there


def rewrite(reasons: Mapping[Case, str | None]) -> None:
    """`reasons` has what was found for each case that ran; None is for those that work."""
    rows: dict[tuple[str, str], dict[str, str | None]] = {}
    for case, reason in reasons.items():
        rows.setdefault((case.family, case.name), {})[case.isa] = reason
    for (family, name), found in rows.items():
        table = TABLES / f"{family}.toml"
        write_row(table, name, found)


def write_row(table: Path, name: str, reasons: Reasons) -> None:
    before, header, rest = table.read_text(encoding="utf-8").partition(f"[{name}]\n")
    assert header, f"{table} has no [{name}]"
    following = re.search(r"^\[\w+\]\n", rest, re.MULTILINE)
    end = following.start() if following else len(rest)
    row = KEY.sub("", rest[:end])
    table.write_text(f"{before}{header}{_key(reasons)}{row}{rest[end:]}", encoding="utf-8")


def _key(reasons: Reasons) -> str:
    broken = {isa: reason for isa, reason in reasons.items() if reason is not None}
    if not broken:
        return ""
    if len(broken) == len(reasons) and len(set(broken.values())) == 1:
        return f"broken = {_text(next(iter(broken.values())))}\n"
    return f"broken = {{ {', '.join(f'{isa} = {_text(reason)}' for isa, reason in broken.items())} }}\n"


def _text(reason: str) -> str:
    return '"' + reason.replace("\\", "\\\\").replace('"', '\\"') + '"'
