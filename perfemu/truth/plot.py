"""plot: true and sampled shares as a picture, by matplotlib (the extra `plot`). The same bytes each time."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from perfemu.errors import UsageError
from perfemu.truth.held import Held, Truth
from perfemu.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png", "pdf")
_ROW_INCHES, _FRAME_INCHES, _WIDTH_INCHES = 0.28, 1.3, 9.0
_NO_METADATA: dict[str, dict[str, Any]] = {  # what of it names a date or a version
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check_format(path: str) -> str:
    """The format that the file's name asks for. UsageError if it is none, or if there is no matplotlib."""
    suffix = os.path.splitext(path)[1].removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"--plot {path}: the name says the format: .{', .'.join(FORMATS)}")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot: needs matplotlib: pip install 'perfemu[plot]'")
    return suffix


def plot(truths: Sequence[Truth], path: str, rows: int) -> bytes:
    """A panel for each event, with its `rows` heaviest functions: a dot for the truth, and the interval of 95 % about
    what the samples say, red where the truth is not in it."""
    # an extra, which is not there where nobody draws
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind = check_format(path)
    panels = [(truth, held) for truth in truths for held in truth.held]
    if not panels:
        raise UsageError("--plot: there is nothing to draw: no event could be held against exact counts")
    heights = [min(rows, len(held.functions.shares)) * _ROW_INCHES + _FRAME_INCHES for _, held in panels]
    with rc_context({"svg.hashsalt": "perfemu", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_INCHES, sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        for (truth, held), (axis,) in zip(panels, axes, strict=True):
            _panel(axis, truth, held, rows)
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, metadata=_NO_METADATA[kind])
    return stream.getvalue()


def _panel(axis: Axes, truth: Truth, held: Held, rows: int) -> None:
    shares = held.functions.shares[:rows]
    for row, share in enumerate(shares):
        colour = "tab:red" if share.is_outside else "tab:gray"
        axis.plot([100 * share.low, 100 * share.high], [row, row], color=colour, linewidth=4, solid_capstyle="butt")
    axis.plot([100 * share.sampled for share in shares], range(len(shares)), "|", color="black", label="sampled")
    axis.plot([100 * share.true for share in shares], range(len(shares)), "o", color="tab:blue", label="true")
    axis.set_yticks(range(len(shares)), [visible(share.key.name) for share in shares])
    axis.invert_yaxis()
    axis.set_xlim(left=0)
    axis.set_xlabel(f"% of {held.counted}")
    axis.set_title(
        f"{visible(truth.path)}: {visible(held.name)} by {held.pmu} on {truth.core}, {held.rate}: "
        f"{held.functions.error:.2%} in the wrong function, {held.instructions.error:.2%} at the wrong instruction",
        fontsize="small",
        loc="left",
        wrap=True,
    )
    axis.legend(loc="lower right")
