"""csv: the rows of the report as comma-separated values, with a line of titles."""

from __future__ import annotations

import csv
from typing import TextIO

from perfemu.profile.report import Report

SUMMARY = "one line per row: event, percent, period, samples, and the sort keys"


def write(report: Report, output: TextIO) -> None:
    """Every event of a group has its own lines."""
    keys = report.options.keys
    children = ["children_percent", "children_period"] if report.options.children else []
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(["event", *children, "percent", "period", "samples", *(key.name for key in keys)])
    for table in report.tables():
        for number, (event, whole) in enumerate(zip(table.events, table.wholes, strict=True)):
            for entry in table.entries:
                total, period, samples = entry.totals[number], entry.periods[number], entry.samples[number]
                if not total or 100.0 * total / whole < report.options.least_percent:
                    continue
                above = [f"{100.0 * total / whole:.4f}", total] if children else []
                texts = [key.text(entry.row).strip() for key in keys]
                writer.writerow([event.name, *above, f"{100.0 * period / whole:.4f}", period, samples, *texts])
