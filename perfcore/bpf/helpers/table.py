"""All rows: importing the families has declared them."""

from __future__ import annotations

from collections.abc import Mapping

from perfcore.bpf.helpers import calls, maps, observing
from perfcore.bpf.helpers.helper import HELPERS, Helper

FAMILIES = (maps, observing, calls)
ALL_HELPERS: Mapping[int, Helper] = HELPERS
