"""perfemu pmu: the PMUs that there are, their registers as they are declared, and what these hold where a run stops."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from emulator.core_file.keys import ISAS
from perfemu.cli.guest import (
    add_board_options,
    add_counters_option,
    add_event_option,
    add_guest_options,
    guest_of,
    refuse_board_options,
)
from perfemu.cli.options import positive_int
from perfemu.cli.streams import tell
from perfemu.cores import core, core_for, isa_of_pmu
from perfemu.errors import UsageError
from perfemu.inspecting import PmuState, Where, inspect_board, inspect_program
from perfemu.pmu_lines import declared_json, declared_lines, model_lines, models_json, state_json, state_lines, wanted
from perfemu.session import Session
from pmu.model import PmuModel, model, models

EXAMPLES = """\
  perfemu pmu list
  perfemu pmu show --pmu pmuv3p9                  its registers, their fields, and what they hold at reset
  perfemu pmu show --pmu zen5 --registers 'PERF_*'
  perfemu pmu show -e cycles,branches --at 1000 ./prog     what the driver has programmed for these events
  perfemu pmu show -e cycles --at 1000,2000,3000 -j ./prog | jq ...      a JSON object for each look
  perfemu pmu show --at-symbol main ./prog        the PMU that the program has to itself
  perfemu pmu show --board virt --at 5000000 -j Image    ... or a kernel on a board
"""

_ACTIONS = ("list", "show")


def arranged(words: Sequence[str]) -> list[str]:
    """`list` and `show` as an option: behind a positional argument, argparse takes all for the program's."""
    return [f"--do={words[0]}", *words[1:]] if words and words[0] in _ACTIONS else list(words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--do", choices=_ACTIONS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--at", metavar="N[,N...]", type=_numbers, default=(), help="look where a CPU has executed N instructions"
    )
    parser.add_argument("--at-symbol", metavar="[MODULE:]NAME", help="look where the program first enters a function")
    add_event_option(parser, default="none: the guest's own PMU is shown, else the one that counts these")
    parser.add_argument("-c", "--count", metavar="PERIOD", type=positive_int, help="as record's: sample each PERIOD")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--registers", metavar="PATTERN", action="append", default=[], help="only these: PMEV*, IA32_PERF_GLOBAL_*"
    )
    output.add_argument("--all", action="store_true", help="also what is zero, and registers that show others' bits")
    output.add_argument("-j", "--json-output", action="store_true", help="one JSON object: all registers and fields")
    parser.add_argument("--isa", choices=ISAS, help="without a program: whose PMU of a core that has several")
    add_counters_option(parser)
    add_board_options(parser)
    add_guest_options(parser)


def run(options: argparse.Namespace) -> int:
    if options.do is None:
        raise UsageError(f"pmu: wants {' or '.join(_ACTIONS)}")
    if options.do == "list":
        return _list(options)
    if not options.program or options.program == ["--"]:
        return _declared(options)
    states = _of_program(options) if options.board is None else _of_board(options)
    if states[-1].ended and (options.at or options.at_symbol):
        tell(f"perfemu: pmu: the run ended before it came to where it was to be looked at{_after(states[-1])}")
    shown = wanted(options.registers)
    for number, state in enumerate(states):
        if options.json_output:
            print(state_json(state, shown))
        else:
            print("\n" * (number > 0) + "\n".join(state_lines(state, shown, everything=options.all)))
    return 0


def _list(options: argparse.Namespace) -> int:
    if options.program or options.event or options.at or options.at_symbol:
        raise UsageError("pmu list: runs nothing; perfemu pmu show does")
    found = [model(name) for name in models()]
    if options.json_output:
        print(models_json(found))
    else:
        print("\n".join(line for each in found for line in model_lines(each)))
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    """An argparse type."""
    numbers = tuple(map(positive_int, text.split(",")))
    if list(numbers) != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text}: want numbers that ascend")
    return numbers


def _after(state: PmuState) -> str:
    return f": after {', '.join(f'{cpu.instructions:,}' for cpu in state.cpus)} instructions" if state.cpus else ""


def _declared(options: argparse.Namespace) -> int:
    shown = wanted(options.registers)
    if options.event or options.at or options.at_symbol or options.board:
        raise UsageError("pmu show: no program to run: name it after the options")
    for number, found in enumerate(_models(options)):
        if options.json_output:
            print(declared_json(found, shown))
        else:
            print("\n" * (number > 0) + "\n".join(declared_lines(found, shown)))
    return 0


def _models(options: argparse.Namespace) -> Iterator[PmuModel]:
    """--pmu's, or a core's."""
    if options.pmu is not None:
        isa_of_pmu(options.pmu)
        yield model(options.pmu)
        return
    if options.core is None and options.isa is None:
        raise UsageError("pmu show: wants a program, or --pmu NAME (perfemu pmu list), --core or --isa")
    isas = core(options.core, options.core_changes).isas if options.core is not None else ()
    for isa in [options.isa] if options.isa else isas:
        yield model(core_for(options.core, isa, options.core_changes).pmu_models[isa])


def _of_program(options: argparse.Namespace) -> list[PmuState]:
    refuse_board_options(options)
    guest = guest_of(options)
    session = Session(guest)
    if options.event and guest.counters is None:  # as many as the part has, whose driver is to be seen
        session = Session(replace(guest, counters=session.pmu_model.counters))
    return inspect_program(session, options.event, options.count, Where(options.at, options.at_symbol))


def _of_board(options: argparse.Namespace) -> list[PmuState]:
    if options.at_symbol is not None:
        raise UsageError("--at-symbol: is for programs; a board's image is stopped by --at N")

    # only boards need it
    from perfemu.cli.board import session_of

    session = session_of(options)
    if options.event and session.guest.counters is None:
        session.guest = replace(session.guest, counters=session.pmu_model.counters)
    return inspect_board(session, options.event, options.count, Where(options.at))
