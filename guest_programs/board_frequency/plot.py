"""The frequency of a CPU, as board_frequency has asked for it: by the moment, and by the Activity Monitors' ratio.

usage: perfemu run --board virt ... virt.elf | plot.py PROFILE.toml OUTPUT.svg

Prints a line for each millisecond, and draws them over the frequency that the profile says. The scale is what Linux's
scheduler multiplies load by (arch/arm64/kernel/topology.c, amu_scale_freq_tick): 1024 is the highest frequency.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.frequency import FrequencyProfile, TimeBase, read_profile

COUNTER_HZ = 62_500_000
CAPACITY_SHIFT = 10
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 300, 50, 34, 34
PROFILE_COLOUR, MOMENT_COLOUR, RATIO_COLOUR = "#bbbbbb", "#c0392b", "#1f5fa8"


@dataclass(frozen=True, slots=True)
class Millisecond:
    """Cycles, and ticks of the system counter: of the whole, and of the moment behind it."""

    cycles: int
    ticks: int
    moment_cycles: int
    moment_ticks: int

    @property
    def ratio_hz(self) -> float:
        return self.cycles * COUNTER_HZ / self.ticks

    @property
    def moment_hz(self) -> float:
        return self.moment_cycles * COUNTER_HZ / self.moment_ticks

    def scale(self, highest_hz: int) -> int:
        """In whole numbers, as the kernel has it."""
        most = (COUNTER_HZ << 2 * CAPACITY_SHIFT) // highest_hz
        return min((self.cycles * most >> CAPACITY_SHIFT) // self.ticks, 1 << CAPACITY_SHIFT)


def parse(lines: Sequence[str]) -> list[Millisecond]:
    return [Millisecond(*(int(word, 16) for word in line.split())) for line in lines]


def table(found: Sequence[Millisecond], highest_hz: int) -> Iterator[str]:
    yield "until ms  at that moment  by the ratio  scale"
    for number, each in enumerate(found, 2):
        moment, ratio = each.moment_hz / 1e9, each.ratio_hz / 1e9
        yield f"{number:8}  {moment:10.3f} GHz  {ratio:8.3f} GHz  {each.scale(highest_hz):5}"


def drawing(found: Sequence[Millisecond], profile: FrequencyProfile) -> str:
    """SVG: frequency over time."""
    base = TimeBase(profile, 1_000_000_000)  # a reference cycle is a nanosecond
    last_ms = len(found) + 1
    top_hz = base.highest_hz * 1.1

    def x(ms: float) -> str:
        return f"{LEFT + ms * (WIDTH - LEFT - 10) / last_ms:.1f}"

    def y(hz: float) -> str:
        return f"{HEIGHT - BOTTOM - hz * (HEIGHT - TOP - BOTTOM) / top_hz:.1f}"

    def line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
        text = " ".join(f"{x(ms)},{y(hz)}" for ms, hz in points)
        return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

    def label(where: str, text: str, colour: str = "#333333", anchor: str = "middle") -> str:
        return f'<text {where} fill="{colour}" text-anchor="{anchor}">{text}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for ghz in range(int(top_hz / 1e9) + 1):
        hz = ghz * 1e9
        parts.append(line([(0, hz), (last_ms, hz)], "#eeeeee", 1))
        parts.append(label(f'x="{LEFT - 8}" y="{y(hz)}"', f"{ghz}", anchor="end"))
    parts.append(label(f'x="{LEFT - 8}" y="{TOP - 14}"', "GHz", anchor="end"))
    parts += [label(f'x="{x(ms)}" y="{HEIGHT - 14}"', f"{ms}") for ms in range(0, last_ms + 1, 5)]
    parts.append(label(f'x="{x(last_ms)}" y="{HEIGHT - 14}"', "ms", anchor="end"))
    parts.append(line(list(_steps(base, last_ms * 1_000_000)), PROFILE_COLOUR, 1.5))
    for number, each in enumerate(found, 1):
        parts.append(line([(number, each.ratio_hz), (number + 1, each.ratio_hz)], RATIO_COLOUR, 3))
        centre = f'cx="{x(number + 1)}" cy="{y(each.moment_hz)}"'
        parts.append(f'<circle {centre} r="3.5" fill="{MOMENT_COLOUR}"/>')
    for place, (text, colour) in enumerate(
        (("its frequency", "#888888"), ("asked for at the moment", MOMENT_COLOUR), ("by the ratio", RATIO_COLOUR))
    ):
        parts.append(label(f'x="{LEFT + 20 + 170 * place}" y="18"', text, colour, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _steps(base: TimeBase, end_ns: int) -> Iterator[tuple[float, float]]:
    """Corners of the profile: ms and Hz."""
    laps = range(0, end_ns, base.lap_reference) if base.lap_reference else (0,)
    starts = [(lap + reference, hz) for lap in laps for _, reference, hz in base.steps if lap + reference < end_ns]
    ends = [*(start for start, _ in starts[1:]), end_ns]
    for (start, hz), end in zip(starts, ends, strict=True):
        yield start / 1e6, hz
        yield end / 1e6, hz


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    profile = read_profile(sys.argv[1])
    found = parse(sys.stdin.read().splitlines())
    print("\n".join(table(found, max(step.hz for step in profile.steps))))
    Path(sys.argv[2]).write_text(drawing(found, profile), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
