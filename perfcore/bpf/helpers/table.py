"""All rows: importing the families has declared them."""

from __future__ import annotations

from collections.abc import Mapping

from perfcore.bpf.helpers import maps, observing
from perfcore.bpf.helpers.helper import HELPERS, Helper

FAMILIES = (maps, observing)
ALL_HELPERS: Mapping[int, Helper] = HELPERS
