"""Options of record: what samples have in them, what becomes of the files, and which of perf's make no sense here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Literal

from perfcore.events.clocks import CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME, CLOCK_TAI
from perfemu.cli.options import AttachedValue, add_refused_options, checked, positive_int
from perfemu.destination import MOST_FILES, Switching
from perfemu.errors import UsageError
from perfemu.events.aux_samples import read_aux_sample, read_snapshots
from perfemu.events.sample_options import SAMPLE_OPTIONS
from perfemu.file_limits import RING_BUFFER_PAGES, Files
from perfemu.moments import Span
from perfemu.quantities import SECOND_NS, size_bytes, time_ns

_CLOCKS = {  # by perf's names
    "mono": CLOCK_MONOTONIC,
    "monotonic": CLOCK_MONOTONIC,
    "raw": CLOCK_MONOTONIC_RAW,
    "monotonic_raw": CLOCK_MONOTONIC_RAW,
    "real": CLOCK_REALTIME,
    "realtime": CLOCK_REALTIME,
    "boot": CLOCK_BOOTTIME,
    "boottime": CLOCK_BOOTTIME,
    "tai": CLOCK_TAI,
}
_MOST_PAGES = 1 << 18  # of 4 KiB, for each CPU
_NOT_YET = {
    "-u, --uid": "a user's processes",
    "-v, --verbose": "more words",
    "-z, --compression-level": "compression",
}
_TRUE_ANYWAY = {  # what perf does with these, is done in any case
    "--buildid-all": "build-ids of all files that are mapped: always",
    "--timestamp-boundary": "times of the first and the last sample: always",
    "--strict-freq": "no lower rate than was asked for: never",
    "--tail-synthesize": "tasks and mappings are recorded as they come, and kept with --overwrite, too",
}
_SENSELESS = {
    "--aio": "how perf writes; nothing here waits for the host's disk",
    "--affinity": "where perf reads its buffers; nothing here depends on the host's CPUs",
    "--mmap-flush": "when perf reads its buffers; none overflows here",
    "--no-buffering": "when perf reads its buffers; none overflows here",
    "--threads": "how perf writes; there is one file",
    "-r, --realtime": "perf's own priority; it takes no part in the guest",
    "--num-thread-synthesize": "how fast perf looks at /proc; nothing there is older than the program",
    "--proc-map-timeout": "how long perf looks at /proc; nothing there is older than the program",
    "--synth": "what perf reads in /proc; nothing there is older than the program",
    "--exclude-perf": "there is no perf in the guest whose events could be left out",
    "--kcore": "the modelled kernel has no code; a board's is read in its memory",
    "--vmlinux": "the modelled kernel has no code; a board's symbols: --kallsyms",
    "--debuginfod": "nothing is asked of the network",
    "--clang-opt": "perf's own compiler; BPF programs come compiled",
    "--clang-path": "perf's own compiler; BPF programs come compiled",
}


def add_sample_options(parser: argparse.ArgumentParser) -> None:
    """What is in each sample, and which records there are besides."""
    group = parser.add_argument_group("samples and records")
    for option in SAMPLE_OPTIONS.values():
        group.add_argument(*option.flags, dest=f"sample_{option.name}", action="store_true", help=option.help)
    group.add_argument(
        "-k", "--clockid", metavar="CLOCK", type=_clock,
        help="of the times: mono, raw, boot; of software events also real and tai",
    )  # fmt: skip
    group.add_argument(
        "--user-regs", action=AttachedValue, read=str, metavar="=REGISTERS", help="registers in user mode [all]"
    )
    group.add_argument(
        "-I",
        "--intr-regs",
        action=AttachedValue,
        read=str,
        metavar="=REGISTERS",
        help="registers at the overflow [all]",
    )


def add_trace_options(parser: argparse.ArgumentParser) -> None:
    """What is written of a trace, if not all of it."""
    group = parser.add_argument_group("traces (docs/units.md)")
    group.add_argument(
        "-S", "--snapshot", action=AttachedValue, read=read_snapshots, metavar="=[e][BYTES]",
        help="write only the latest of the trace, when the guest sends SIGUSR2 to its parent or says snapshot "
        "(--control); e: and at the end",
    )  # fmt: skip
    group.add_argument(
        "--aux-sample", action=AttachedValue, read=read_aux_sample, metavar="=BYTES",
        help="in samples of the trace's group, the latest of it [4096]: -e '{intel_pt//u,cycles:u}'",
    )  # fmt: skip


def sample_options(options: argparse.Namespace) -> tuple[str, ...]:
    """The names of those that are given."""
    return tuple(name for name in SAMPLE_OPTIONS if getattr(options, f"sample_{name}"))


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """What becomes of the records."""
    group = parser.add_argument_group("files")
    group.add_argument("-o", "--output", metavar="FILE", default="perf.data", help="file to write, - is stdout")
    group.add_argument("--overwrite", action="store_true", help="keep the last samples alone, as many as a buffer has")
    group.add_argument(
        "-m", "--mmap-pages", metavar="PAGES | SIZE[,PAGES | SIZE]", type=checked(_buffers),
        default=(RING_BUFFER_PAGES, None),
        help="buffer of each CPU, in pages of 4 KiB, or as 512K; it matters to --overwrite and --switch-output; behind "
        "a comma that of traces (AUX area) [128,1024]",
    )  # fmt: skip
    group.add_argument(
        "--switch-output", action=AttachedValue, read=_switch, metavar="=SIZE | TIME | signal",
        help="begin another file after so many bytes (10M) or so much simulated time (1s, 20ms), or when the guest "
        "sends SIGUSR2 to its parent (signal): FILE.<time>",
    )  # fmt: skip
    group.add_argument(
        "--switch-max-files", metavar="N", type=positive_int, help="with --switch-output: keep the last N files alone"
    )
    group.add_argument("--timestamp-filename", action="store_true", help="write FILE.<simulated time>")
    group.add_argument("--max-size", metavar="SIZE", type=checked(size_bytes), help="stop when the file is so large")
    group.add_argument("-B", "--no-buildid", action="store_true", help="no build-ids in the file")
    group.add_argument(
        "-N", "--no-buildid-cache", action="store_true", help="keep no vDSO in ~/.debug, where perf looks for its code"
    )
    group.add_argument("--dry-run", action="store_true", help="run nothing: is all that was asked for right?")


def files_of(options: argparse.Namespace) -> Files:
    """What these options say."""
    switch: Span | int | Literal["signal"] | None = options.switch_output
    if options.switch_max_files is not None and switch is None:
        raise UsageError("record --switch-max-files: wants --switch-output")
    if (options.switch_max_files or 0) > MOST_FILES:
        why = f"at most {MOST_FILES}: each is open until the run's end"
        raise UsageError(f"record --switch-max-files {options.switch_max_files}: {why}")
    switching = Switching(
        bytes=switch if isinstance(switch, int) else 0,
        by_signal=switch == "signal",
        every=switch if isinstance(switch, Span) else None,
        files=options.switch_max_files or MOST_FILES,
        names_time=options.timestamp_filename,
    )
    pages, aux_pages = options.mmap_pages
    return Files(pages, aux_pages, options.max_size, switching)


def refuse_options(parser: argparse.ArgumentParser) -> None:
    """perf's that there are not, by name; those whose promise is kept in any case do nothing."""
    for names, meaning in _TRUE_ANYWAY.items():
        parser.add_argument(*names.split(", "), action="store_true", help=meaning)
    for names, reason in _SENSELESS.items():
        _refuse(parser, names, reason)
    add_refused_options(parser, _NOT_YET)


def _refuse(parser: argparse.ArgumentParser, names: str, reason: str) -> None:
    parser.add_argument(*names.split(", "), action=_Senseless, nargs="?", metavar=reason, help=argparse.SUPPRESS)


class _Senseless(argparse.Action):
    """An option of perf's that could do nothing here."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option_string: str | None = None
    ) -> None:
        raise UsageError(f"{parser.prog.removeprefix('perfemu ')} {option_string}: {self.metavar}")


def _clock(text: str) -> int:
    name = text.lower().removeprefix("clock_")
    if name not in _CLOCKS:
        raise argparse.ArgumentTypeError(f"'{text}' is no clock; there is {', '.join(_CLOCKS)}")
    return _CLOCKS[name]


def _buffers(text: str) -> tuple[int, int | None]:
    """Pages of the ring buffer, and of the AUX area; what is not said is as without the option."""
    ring, _, aux = text.partition(",")
    return _pages(ring) if ring else RING_BUFFER_PAGES, _pages(aux) if aux else None


def _pages(text: str) -> int:
    """A power of two that holds as much."""
    pages = int(text) if text.isascii() and text.isdigit() else -(-size_bytes(text) // 4096)
    if not 1 <= pages <= _MOST_PAGES:
        raise ValueError(f"{text}: buffers have 1 to {_MOST_PAGES} pages of 4 KiB")
    return 1 << (pages - 1).bit_length()


_TIMES: Mapping[str, int] = {"m": 60 * SECOND_NS, "h": 3600 * SECOND_NS, "d": 86400 * SECOND_NS}
_LONG_TIME = re.compile(r"(\d{1,6})([mhd])")


def _switch(text: str) -> Span | int | Literal["signal"]:
    """Simulated time or bytes."""
    if text in ("", "signal"):
        return "signal"
    long_time = _LONG_TIME.fullmatch(text)
    if long_time is not None:
        return Span(ns=int(long_time[1]) * _TIMES[long_time[2]])
    if text.endswith("s"):
        return Span(ns=time_ns(text))
    try:
        size = size_bytes(text)
    except ValueError:
        size = 0
    if not size:
        raise ValueError(f"'{text}' is no size (10M), no simulated time (1s, 20ms), and not signal")
    return size
