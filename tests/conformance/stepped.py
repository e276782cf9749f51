"""A run of ours instruction by instruction: which file's which instruction retired how often. 200,000 a second."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from emulator.cpu import ExitReason
from emulator.linux.mapping import Mapping
from emulator.linux.program import Program
from emulator.linux.task import Task
from emulator.machine import Machine
from reference import SymbolTable


@dataclass
class Stepped:
    """What retired after start-up, by address, and what was mapped where."""

    counts: Counter[int] = field(default_factory=Counter)
    mappings: list[tuple[int, int, int, str]] = field(default_factory=list)  # start, end, file offset, path

    def note_mapping(self, task: Task, mapping: Mapping) -> None:
        if mapping.file is not None:
            self.mappings.append((mapping.start, mapping.end, mapping.offset, mapping.file.path))


def run_stepped(machine: Machine, program: Program, start: int) -> Stepped:
    """Run to the end, counting from the first system call of number `start` on (-1: the first of all)."""
    stepped = Stepped()
    machine.kernel.tracepoints.mmap.subscribe(stepped.note_mapping)
    machine.kernel.tracepoints.sys_enter.subscribe(lambda task, number, _: started.add(number))
    started: set[int] = set()
    machine.start(program)
    kernel = machine.kernel
    cpu = machine.cpus[0]
    core = cpu.core
    answers = {
        ExitReason.SYSCALL: kernel.handle_syscall,
        ExitReason.FAULT: kernel.handle_fault,
        ExitReason.REGISTER: kernel.handle_register,
        ExitReason.EXCEPTION: kernel.handle_exception,
    }
    counting = False
    while kernel.exit_status is None:
        pc, before = core.pc, core.cycles
        reason = ExitReason(core.run(min(before + 1, kernel.next_deadline())))
        if reason in answers:
            answers[reason](cpu)
        elif kernel.next_deadline() <= core.cycles:
            kernel.handle_deadline(cpu)
        if counting and core.cycles != before:
            stepped.counts[pc] += 1
        counting = counting or (bool(started) and (start == -1 or start in started))
    assert os.WIFEXITED(kernel.exit_status)
    return stepped


def by_function(counts: Counter[int], mappings: list[tuple[int, int, int, str]], debug: Path) -> Counter[str]:
    """Counts by `file:function`."""
    tables: dict[str, SymbolTable] = {}
    functions: Counter[str] = Counter()
    for address, count in counts.items():
        for start, end, offset, path in reversed(mappings):
            if start <= address < end:
                if path not in tables:
                    tables[path] = SymbolTable(path, debug)
                functions[f"{Path(path).name}:{tables[path].name_at_offset(address - start + offset)}"] += count
                break
        else:
            functions[f"?:{address:#x}"] += count
    return functions
