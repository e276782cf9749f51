"""VendorMetric: one row of a vendor's list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from perfemu.vendor_metrics.expression import Expression, parse


@dataclass(frozen=True)
class VendorMetric:
    """A formula by name. `scale_unit`: by what the result is multiplied, and the unit that follows, as ``100%``."""

    name: str
    formula: str
    groups: tuple[str, ...]
    text: str
    scale_unit: str = ""

    @cached_property
    def expression(self) -> Expression:
        return parse(self.formula)

    @cached_property
    def _parts(self) -> tuple[float, str]:
        match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)(.*)", self.scale_unit)
        return (float(match[1]), match[2]) if match else (1.0, "")

    @property
    def scale(self) -> float:
        return self._parts[0]

    @property
    def unit(self) -> str:
        return self._parts[1]
