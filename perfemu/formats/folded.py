"""folded: one line per call path, outermost frame first, and its weight: what flamegraph.pl and inferno read."""

from __future__ import annotations

from typing import TextIO

from perfemu.profile.report import Report

SUMMARY = "call paths for flamegraph.pl: comm;main;leaf 1000"


def write(report: Report, output: TextIO) -> None:
    """Weights are periods. With several events, the event's name is the outermost frame."""
    events = [event for event in report.selected().events if event.sample_count]
    weights: dict[str, int] = {}
    for event in events:
        for sample, weight in event.samples.items():
            frames = [place.function_name.replace(";", ":") for place in reversed(sample.chain or (sample.place,))]
            names = [sample.comm.replace(";", ":"), *frames]
            if len(events) > 1:
                names.insert(0, event.name)
            path = ";".join(names)
            weights[path] = weights.get(path, 0) + weight.period
    output.writelines(f"{path} {period}\n" for path, period in sorted(weights.items()))
