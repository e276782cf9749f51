"""Small machines and loops of hand-made instructions for the pipelines' tests."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from emulator import _native
from emulator.op_classes import OpClass
from emulator.probes import Probe

FLAGS, VECTOR = 32, 34  # emulator/native/ops/timed_op.hpp
CONDITIONAL = 1  # BranchKind

Op = dict[str, Any]
Config = dict[str, Any]

LOST = (Probe.SLOTS_FRONTEND, Probe.SLOTS_BACKEND, Probe.SLOTS_BAD_SPECULATION)

# Nothing limits but what a test sets: eight slots, eight ports for everything.
PORTS = [f"P{number}" for number in range(8)]
MACHINE: Config = {
    "pipeline": {
        "ports": PORTS,
        "load_ports": PORTS,
        "store_address_ports": PORTS,
        "mispredict_cycles": 10,
        "store_buffer": 64,
        "fetch_bytes": 32,
    },
    "l1d": {"size": 32768, "ways": 8, "latency": 4},
    "ops": {
        "ALU": {"latency": 1, "ports": PORTS},
        "MUL64": {"latency": 3, "ports": ["P0"]},
        "MUL_ADD64": {"latency": 4, "accumulate_latency": 1, "ports": ["P0"]},
        "DIV64": {"latency": 10, "ports": ["P0"], "busy_cycles": 10},
        "MOVE": {"latency": 1, "ports": PORTS},
        "ZERO": {"latency": 1, "ports": PORTS},
        "BRANCH": {"latency": 1, "ports": PORTS},
        "STRING": {"latency": 1, "ports": PORTS},
        "SERIALIZE": {"latency": 1, "ports": PORTS},
        "FP_ADD": {"latency": 2, "ports": PORTS},
        "AES": {"latency": 2, "ports": PORTS},
        "AES_MIX": {"latency": 2, "ports": PORTS},
    },
}


def machine(model: str, tables: Config | None = None, **pipeline: object) -> Config:
    """MACHINE as one of the models, with keys of [pipeline] and whole tables replaced."""
    config = deepcopy(MACHINE)
    config["pipeline"]["model"] = model
    if model == "out_of_order":
        config["pipeline"] |= {"dispatch_width": 8, "retire_width": 64, "rob_entries": 512, "store_forward_cycles": 5}
    if model == "in_order":
        config["pipeline"] |= {"issue_width": 2}
    config["pipeline"] |= pipeline
    for name, table in (tables or {}).items():
        if name == "ops":
            config["ops"] |= table
        else:
            config[name] = table
    return config


def op(op_class: str, to: list[int], of: list[int], *flags: str, **fields: object) -> Op:
    return {"op_class": int(OpClass[op_class]), "destinations": to, "sources": of, "flags": list(flags), **fields}


def alu(to: int, *of: int) -> Op:
    return op("ALU", [to], list(of))


def load(to: int, base: int = 20, **fields: object) -> Op:
    return op("NONE", [to], [], "loads", address_sources=[base], **fields)


def store(of: int, base: int = 20, **fields: object) -> Op:
    return op("NONE", [], [of], "stores", address_sources=[base], **fields)


def compare(of: int) -> Op:
    return op("ALU", [FLAGS], [of], "compares", "compare_only")


def branch() -> Op:
    return op("BRANCH", [], [FLAGS], "fuses_with_compare", branch=CONDITIONAL)


@dataclass(frozen=True, slots=True)
class Result:
    """Cycles until the last instruction was done, and what was counted."""

    cycles: int
    totals: tuple[int, ...]

    def __getitem__(self, probe: Probe) -> int:
        return self.totals[probe]

    @property
    def lost(self) -> int:
        return sum(self[probe] for probe in LOST)


def run(config: Config, ops: list[Op], iterations: int = 1, **options: Any) -> Result:
    answer = _native.simulate_ops(config, ops, iterations, **options)
    return Result(answer["cycles"], tuple(answer["totals"]))
