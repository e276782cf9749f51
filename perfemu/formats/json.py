"""json: the report as one JSON document: events, their rows, the rows' call trees."""

from __future__ import annotations

import json
from typing import Any, TextIO

from perfemu.profile.call_tree import CallBranch
from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.report import Report

SUMMARY = "events, rows and call trees as one document"


def write(report: Report, output: TextIO) -> None:
    """Numbers are exact: periods and counts, no percentages."""
    tables = report.tables()
    document = {
        "lost_samples": report.profile.lost_samples,
        "command_line": list(report.profile.features.command_line),
        "architecture": report.profile.features.architecture,
        "events": [
            {
                "name": event.name,
                "samples": event.sample_count,
                "period": event.period,
                "rows": [_row(entry, table, number, report) for entry in table.entries if entry.totals[number]],
            }
            for table in tables
            for number, event in enumerate(table.events)
        ],
    }
    json.dump(document, output, indent=1)
    output.write("\n")


def _row(entry: Entry, table: Histogram, number: int, report: Report) -> dict[str, Any]:
    row: dict[str, Any] = {key.name: key.text(entry.row).strip() for key in table.options.keys}
    row |= {"samples": entry.samples[number], "period": entry.periods[number]}
    if table.options.children:
        row["children_period"] = entry.totals[number]
    if table.options.call_trees and number == 0:
        row["calls"] = [_branch(branch) for branch in entry.tree.branches()]
    return row


def _branch(branch: CallBranch) -> dict[str, Any]:
    made: dict[str, Any] = {
        "frames": [place.name for place in branch.frames],
        "period": branch.period,
        "samples": branch.samples,
    }
    if branch.children:
        made["calls"] = [_branch(child) for child in branch.children]
    return made
