"""PerfDataError: what is wrong with a perf.data file, in one line."""

from __future__ import annotations


class PerfDataError(Exception):
    """A file that is not, or not wholly, a perf.data file. The text names the file, what is wrong, and where."""


class Malformed(Exception):
    """Some bytes do not decode; the reader adds the file's name and makes it a PerfDataError."""
