"""event_name: what to call an event that its file does not name, from its attr."""

from __future__ import annotations

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfemu.events.names import GENERIC_EVENTS

_NAMES: dict[tuple[int, int], str] = {(event.type, event.config): event.name for event in GENERIC_EVENTS}


def event_name(attr: PerfEventAttr) -> str:
    """perf's name, with its modifiers, where the type has names; else type and config in hex."""
    if attr.type == PerfType.RAW:
        name = f"raw {attr.config:#x}"
    else:
        name = _NAMES.get((attr.type, attr.config), f"unknown attr type: {attr.type}, config {attr.config:#x}")
    modifiers = "p" * attr.precise_ip
    if attr.exclude_user or attr.exclude_kernel or attr.exclude_hv:
        allowed = (("u", attr.exclude_user), ("k", attr.exclude_kernel), ("h", attr.exclude_hv))
        modifiers = "".join(letter for letter, excluded in allowed if not excluded) + modifiers
    return f"{name}:{modifiers}" if modifiers else name
