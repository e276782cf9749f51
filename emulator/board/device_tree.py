"""A device tree in the flattened form: the hardware's description that a kernel is given.

Format: Devicetree Specification 0.4, "Flattened Devicetree (DTB) Format".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

Cells = tuple[int, ...]  # 32 bits each
Property = str | bytes | Cells | list[str]

MAGIC, VERSION, COMPATIBLE_VERSION = 0xD00D_FEED, 17, 16
BEGIN_NODE, END_NODE, PROP, END = 1, 2, 3, 9
HEADER = struct.Struct(">10I")


@dataclass
class Node:
    """One device: properties in order, and what is below it."""

    name: str
    properties: dict[str, Property] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)


def cells(*doubles: int) -> Cells:
    """Each of the numbers in two cells, the higher first."""
    return tuple(word for double in doubles for word in (double >> 32, double & 0xFFFF_FFFF))


def flattened(root: Node) -> bytes:
    strings = bytearray()
    offsets: dict[str, int] = {}
    body = bytearray()

    def text(value: str) -> bytes:
        return value.encode() + b"\0"

    def pad() -> None:
        body.extend(bytes(-len(body) % 4))

    def value_of(value: Property) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list):
            return b"".join(map(text, value))
        return struct.pack(f">{len(value)}I", *value)

    def add(node: Node) -> None:
        body.extend(struct.pack(">I", BEGIN_NODE) + text(node.name))
        pad()
        for name, value in node.properties.items():
            if name not in offsets:
                offsets[name] = len(strings)
                strings.extend(text(name))
            data = value_of(value)
            body.extend(struct.pack(">3I", PROP, len(data), offsets[name]) + data)
            pad()
        for child in node.children:
            add(child)
        body.extend(struct.pack(">I", END_NODE))

    add(root)
    body.extend(struct.pack(">I", END))
    reserved = bytes(16)  # the list of memory reservations is empty
    structure_at = HEADER.size + len(reserved)
    strings_at = structure_at + len(body)
    size = strings_at + len(strings)
    header = HEADER.pack(
        MAGIC, size, structure_at, strings_at, HEADER.size, VERSION, COMPATIBLE_VERSION, 0, len(strings), len(body)
    )
    return header + reserved + bytes(body) + bytes(strings)
