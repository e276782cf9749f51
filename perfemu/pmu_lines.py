"""Lines of PMUs: what their registers hold, and how they are declared, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

from perfemu.inspecting import CpuState, PmuState
from pmu.live.live_pmu import open_pmu
from pmu.model import ANY_ISA, PmuModel, description
from pmu.register import Register
from pmu.register_notes import access, bits, notes, place, title, undeclared
from pmu.register_view import RegisterFile, RegisterView, views

_NAME_WIDTH = 26
_FIELD_WIDTH = 16
_BITS_WIDTH = 8

Wanted = Callable[[str], bool]
"""Whether a register of that name is."""


def wanted(patterns: list[str]) -> Wanted:
    """Shell patterns, in any case; none: all."""
    lowered = [pattern.lower() for pattern in patterns]
    return lambda name: not lowered or any(fnmatchcase(name.lower(), pattern) for pattern in lowered)


# models


def model_lines(model: PmuModel) -> Iterator[str]:
    fixed = f" and {len(model.fixed_counters)} fixed" if model.fixed_counters else ""
    yield f"  {model.name:<20} [{model.isa if model.isa != ANY_ISA else 'any core'}, sysfs {model.sysfs_name}]"
    yield f"       {description(model.name)}"
    yield f"       {model.counters}{fixed} counters of {model.counter_width_bits} bits, {len(model.events)} events"


def models_json(models: Iterable[PmuModel]) -> str:
    """One array, on one line."""
    found = [
        {
            "model": model.name,
            "isa": model.isa,
            "pmu": model.sysfs_name,
            "summary": description(model.name),
            "counters": model.counters,
            "fixed_counters": len(model.fixed_counters),
            "counter_bits": model.counter_width_bits,
            "events": len(model.events),
        }
        for model in models
    ]
    return json.dumps(found)


# what registers hold


def state_lines(state: PmuState, shown: Wanted, *, everything: bool) -> Iterator[str]:
    """`everything`: also what is zero, and registers that show again what others do."""
    whose = "counts" if state.events else "the guest's own"
    yield f"PMU {state.model.sysfs_name} ({state.model.name}), {whose}; core {state.title}"
    if not state.cpus:
        yield "The guest has none: its CPUs have no instructions for this PMU."
    for cpu in state.cpus:
        yield ""
        yield from _cpu_lines(cpu, state, shown, everything)


def _cpu_lines(cpu: CpuState, state: PmuState, shown: Wanted, everything: bool) -> Iterator[str]:
    at = " at the end" if state.ended else ""
    yield (
        f"CPU {cpu.number}{at}: {cpu.instructions:,} instructions, cycle {cpu.cycle:,}, PC {cpu.pc:#x} ({cpu.level});"
        f" interrupt {'asserted' if cpu.interrupt else 'not asserted'}"
    )
    for event in cpu.programmed:
        yield f"  {event.event} is counted by {event.counter}: {event.count:,} so far"
    for register in cpu.registers:
        if shown(register.name) and (everything or (register.value and not register.again)):
            yield from _register_lines(register, everything)


def _register_lines(register: RegisterView, everything: bool) -> Iterator[str]:
    yield f"  {register.name:<{_NAME_WIDTH}} {register.value:#018x}"
    for field in register.fields:
        if field.value or everything or field.name == register.register.event_field:
            value = f"{field.value}" if field.value < 10 else f"{field.value:#x}"
            yield f"    {field.name:<{_FIELD_WIDTH}} {field.bits:>{_BITS_WIDTH}}  {value:<18} {field.meaning}".rstrip()
    if register.unknown:
        yield f"    {'(no field)':<{_FIELD_WIDTH}} {'':>{_BITS_WIDTH}}  {register.unknown:#x}"


def state_json(state: PmuState, shown: Wanted) -> str:
    """One object, on one line: all registers, all fields."""
    found = {
        "pmu": state.model.sysfs_name,
        "model": state.model.name,
        "core": state.title,
        "events": list(state.events),
        "ended": state.ended,
        "cpus": [_cpu_object(cpu, shown) for cpu in state.cpus],
    }
    return json.dumps(found)


def _cpu_object(cpu: CpuState, shown: Wanted) -> dict[str, object]:
    return {
        "cpu": cpu.number,
        "instructions": cpu.instructions,
        "cycle": cpu.cycle,
        "pc": cpu.pc,
        "level": cpu.level,
        "interrupt": cpu.interrupt,
        "programmed": [{"event": each.event, "counter": each.counter, "count": each.count} for each in cpu.programmed],
        "registers": [_register_object(register) for register in cpu.registers if shown(register.name)],
    }


def _register_object(register: RegisterView) -> dict[str, object]:
    return {
        "name": register.name,
        "value": register.value,
        "fields": [
            {"name": field.name, "hi": field.hi, "lo": field.lo, "value": field.value, "meaning": field.meaning}
            for field in register.fields
        ],
        "unknown": register.unknown,
        "again": register.again,
    }


# how registers are declared


def declared_lines(model: PmuModel, shown: Wanted) -> Iterator[str]:
    """All that the register model has, with what each holds after a reset."""
    yield from model_lines(model)
    device = open_pmu(model.name).device
    at_reset = {view.name: view.value for view in views(device)}
    for register in device.registers():
        name, first = _name(device, register), register.name_of(0)
        if not shown(name) and not shown(first):
            continue
        yield ""
        encoding = place(register.encoding_of(0))
        reset = f"{at_reset[first]:#x} at reset" if first in at_reset else "write-only"
        yield f"  {name:<{_NAME_WIDTH + 8}} {encoding}; {reset}"
        yield f"    {title(register)}"
        said = notes(register)
        for field_name, field in sorted(register.fields.items(), key=lambda item: item[1].lo):
            where = bits(field.hi, field.lo)
            note = said.get(field_name, "")
            yield f"    {field_name:<{_FIELD_WIDTH}} {where:>{_BITS_WIDTH}}  {access(field):<8} {note}".rstrip()
        rest = undeclared(register) if register.fields else []
        if rest:
            yield f"    {_reserved(register):<{_FIELD_WIDTH}} {' '.join(rest)}"


def declared_json(model: PmuModel, shown: Wanted) -> str:
    """One object, on one line."""
    device = open_pmu(model.name).device
    at_reset = {view.name: view.value for view in views(device)}
    found = []
    for register in device.registers():
        said = notes(register)
        if not shown(register.name_of(0)) and not shown(_name(device, register)):
            continue
        fields = [
            {"name": name, "hi": each.hi, "lo": each.lo, "access": access(each), "meaning": said.get(name, "")}
            for name, each in sorted(register.fields.items(), key=lambda item: item[1].lo)
        ]
        found.append(
            {
                "name": register.name_of(0),
                "count": device.registers_of(register),
                "encoding": place(register.encoding_of(0)),
                "reset": at_reset.get(register.name_of(0)),
                "fields": fields,
            }
        )
    return json.dumps({"model": model.name, "pmu": model.sysfs_name, "registers": found})


def _name(device: RegisterFile, register: type[Register]) -> str:
    if register.bank is None:
        return register.name_of()
    return f"{register.bank.name.format('<n>')}, n 0 to {device.registers_of(register) - 1}"


def _reserved(register: type[Register]) -> str:
    return "reserved, #GP" if register.reserved_bits_fault else "RES0"
