"""The device tree, read by dtc."""

from __future__ import annotations

import subprocess

import require
from emulator.board.device_tree import Node, cells, flattened
from emulator.board.virt_tree import device_tree


def source(tree: bytes) -> str:
    dtc = require.command("dtc", package="device-tree-compiler")
    done = subprocess.run([dtc, "-q", "-I", "dtb", "-O", "dts"], input=tree, capture_output=True, check=True)
    return done.stdout.decode()


def test_each_kind_of_property() -> None:
    tree = Node(
        "", {"text": "a", "texts": ["b", "cd"], "cells": (1, 0xFFFF_FFFF), "flag": b""}, [Node("n@1", {"text": "e"})]
    )
    lines = [line.strip() for line in source(flattened(tree)).splitlines() if line.strip()]
    assert lines == [
        "/dts-v1/;",
        "/ {",
        'text = "a";',
        'texts = "b\\0cd";',
        "cells = <0x01 0xffffffff>;",
        "flag;",
        "n@1 {",
        'text = "e";',
        "};",
        "};",
    ]


def test_what_the_board_has() -> None:
    initrd = 1 << 32, 2 << 32
    tree = device_tree(
        cpus=2, gic_version=3, ram_bytes=1 << 30, command_line="x=1", seed=5, has_pmu=True, initrd=initrd
    )
    text = source(flattened(tree))
    assert 'compatible = "arm,armv8-pmuv3";' in text
    assert 'bootargs = "x=1";' in text
    assert "reg = <0x00 0x40000000 0x00 0x40000000>;" in text
    assert "linux,initrd-start = <0x01 0x00>;" in text
    assert "linux,initrd-end = <0x02 0x00>;" in text
    assert text.count('device_type = "cpu";') == 2
    assert cells(1 << 32, 5) == (1, 0, 0, 5)
