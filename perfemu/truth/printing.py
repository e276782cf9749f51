"""printing: a Truth as text or JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from perfemu.truth.accuracy import Comparison, Share
from perfemu.truth.held import Held, Truth
from perfemu.truth.skid import Skid
from perfemu.visible import visible

LEAST_P = 0.0001  # smaller ones are said to be so


def text(truth: Truth, rows: int) -> str:
    """For people: what there is to know of each event, and a table of its `rows` heaviest functions."""
    lines = [f"# {visible(truth.path)}: {visible(shlex.join(truth.command))}", f"# core {truth.core}"]
    for held in truth.held:
        lines += ["#", *(f"# {line}" for line in _summary(held)), "", *_table(held, rows), ""]
    lines += [f"# not held: {visible(reason)}" for reason in truth.not_held]
    return "".join(f"{line}\n" for line in lines)


def _summary(held: Held) -> Iterator[str]:
    precise = f", precise_ip {held.precise}" if held.precise else ""
    sampled = f"{held.samples:,} samples of {held.weight:,}"
    yield f"{visible(held.name)}, sampled by {held.pmu}{precise}, {held.rate}: {sampled}"
    run = "the same, sample for sample" if held.same else "NOT the same: it had other input, files or streams"
    yield f"{visible(held.counted)}, counted in the run once more ({run}): {held.events:,}"
    yield f"  in the wrong function:    {_error(held.functions)}"
    yield f"  at the wrong instruction: {_error(held.instructions)}"
    if held.skid is not None:
        yield f"  skid: {_skid(held.skid)}"
    yield f"  at instructions that never made the event: {held.instructions.impossible:.2%}"
    unseen = held.instructions.unseen
    if unseen:
        part = sum(share.true for share in unseen)
        yield f"  unseen: {len(unseen)} instructions that make {part:.2%} of the event have no sample; some were due"
    test = held.functions.chi_square
    p = f"p < {LEAST_P}" if test.p < LEAST_P else f"p = {test.p:.4f}"
    yield f"  bias of functions: chi-square {test.statistic:.1f}, {test.freedom} degrees of freedom, {p}"


def _error(comparison: Comparison[Any]) -> str:
    return f"{comparison.error:7.2%} (by chance {comparison.by_chance:.2%})"


def _skid(skid: Skid) -> str:
    parts = (
        (skid.at_instruction, "of samples at the instruction"),
        (skid.in_function, "elsewhere in its function"),
        (skid.elsewhere, "in another function"),
    )
    return ", ".join(f"{count / skid.samples:.2%} {where}" for count, where in parts)


def _table(held: Held, rows: int) -> Iterator[str]:
    shares = held.functions.shares
    yield f"{'true':>9} {'sampled':>9} {'95 % interval':>19} {'bias':>9} {'samples':>9}  function"
    for share in shares[:rows]:
        interval = f"{share.low:8.2%} .. {share.high:7.2%}"
        mark = "*" if share.is_outside else " "
        name = f"{visible(share.key.name)}  {visible(share.key.module)}"
        yield (
            f"{share.true:9.2%} {share.sampled:9.2%} {interval:>19}{mark}{share.bias:+9.2%} {share.samples:9,}  {name}"
        )
    if len(shares) > rows:
        yield f"{'':60} and {len(shares) - rows} more"


def document(truths: Sequence[Truth]) -> str:
    """JSON: all functions of all events; shares are 0 to 1."""
    return json.dumps([_file(truth) for truth in truths], indent=1) + "\n"


def _file(truth: Truth) -> dict[str, object]:
    return {
        "file": truth.path,
        "command": list(truth.command),
        "core": truth.core,
        "events": [_event(held) for held in truth.held],
        "not_held": list(truth.not_held),
    }


def _event(held: Held) -> dict[str, object]:
    skid = held.skid
    return {
        "event": held.name,
        "pmu": held.pmu,
        "precise_ip": held.precise,
        "rate": held.rate,
        "samples": held.samples,
        "weight": held.weight,
        "counted": held.counted,
        "events": held.events,
        "same_run": held.same,
        "functions": _comparison(held.functions),
        "instructions": _comparison(held.instructions),
        "skid": None
        if skid is None
        else {"at_instruction": skid.at_instruction, "in_function": skid.in_function, "elsewhere": skid.elsewhere},
        "rows": [
            {"function": share.key.name, "module": share.key.module, **_share(share)} for share in held.functions.shares
        ],
    }


def _comparison(comparison: Comparison[Any]) -> dict[str, object]:
    test = comparison.chi_square
    return {
        "error": comparison.error,
        "by_chance": comparison.by_chance,
        "unseen": len(comparison.unseen),
        "impossible": comparison.impossible,
        "chi_square": test.statistic,
        "degrees_of_freedom": test.freedom,
        "p": test.p,
    }


def _share(share: Share[Any]) -> dict[str, object]:
    return {
        "true": share.true,
        "sampled": share.sampled,
        "samples": share.samples,
        "low": share.low,
        "high": share.high,
    }
