"""make fuzz: programs that make random system calls with random arguments, as guests, for as long as is wanted; with
--perf programs that use perf_event_open, ptrace and bpf; with --boards random bare-metal images on boards; with
--devices random accesses to boards' devices; with --checkpoints checkpoints whose state has been changed.

usage: python tests/fuzz [SECONDS] [--perf | --boards | --board BOARD | --devices | --checkpoints] [--seed N]
                         [--isa ISA] [--one]
                         [--in DIR]

Every problem is printed with the command that repeats it, and the status is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.boards.campaign import BOARDS, BoardCampaign
from fuzz.boards.run import show_board
from fuzz.campaign import ISAS, Campaign
from fuzz.checkpoints.campaign import CheckpointCampaign
from fuzz.checkpoints.run import run_seed as run_checkpoint
from fuzz.devices.campaign import DevicesCampaign
from fuzz.devices.run import run_seed as run_devices
from fuzz.perf.run import PERF
from fuzz.run import ANY_CALLS, BASE, CALLS, Kind, Machine, run_seed


def show(isa: str, seed: int, base: Path, kind: Kind) -> int:
    """One program: what it does, and what becomes of it."""
    print(isa, seed, Machine.of(isa, seed))
    for number, call in enumerate(kind.program(isa, seed, CALLS, "/inside", "/inside/program").calls):
        print(f"{number:4} {call}")
    outcome = run_seed(isa, seed, base, kind)
    print(outcome.problem or outcome)
    return 1 if outcome.problem else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Random system calls, or bare-metal images, as guests.")
    parser.add_argument("seconds", type=float, nargs="?", default=60.0, help="how long [60]")
    parser.add_argument("--seed", type=int, default=0, help="the first program's [0]")
    parser.add_argument("--perf", action="store_true", help="programs that use perf_event_open, ptrace and bpf")
    parser.add_argument("--boards", action="store_true", help="bare-metal images instead of programs")
    parser.add_argument("--board", choices=BOARDS, help="images for this one alone [each, in turns]")
    parser.add_argument("--devices", action="store_true", help="accesses to devices instead of programs")
    parser.add_argument("--checkpoints", action="store_true", help="changed checkpoints instead of programs")
    parser.add_argument("--isa", choices=ISAS, help="[both, in turns]")
    parser.add_argument("--one", action="store_true", help="only that seed, shown call by call")
    parser.add_argument(
        "--in", type=Path, default=BASE, dest="base", help=f"where programs get their directory [{BASE}]"
    )
    options = parser.parse_args()
    boards = BOARDS if options.board is None else (options.board,)
    kind = PERF if options.perf else ANY_CALLS
    isas = ISAS if options.isa is None else (options.isa,)
    if options.one:
        if options.checkpoints:
            changed = run_checkpoint(options.seed, options.base)
            print(changed.problem or changed)
            return 1 if changed.problem else 0
        if options.devices:
            found = run_devices(options.seed, options.base)
            print(found.problem or found)
            return 1 if found.problem else 0
        if options.boards or options.board:
            return max(show_board(board, options.seed, options.base) for board in boards)
        return max(show(isa, options.seed, options.base, kind) for isa in isas)
    campaign: BoardCampaign | CheckpointCampaign | DevicesCampaign | Campaign
    if options.checkpoints:
        campaign = CheckpointCampaign(options.seed, options.base)
    elif options.devices:
        campaign = DevicesCampaign(options.seed, options.base)
    elif options.boards or options.board:
        campaign = BoardCampaign(boards, options.seed, options.base)
    else:
        campaign = Campaign(isas, options.seed, options.base, kind)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for failure in campaign.next():
            print(failure, flush=True)
    print(campaign.summary())
    print("endings:", ", ".join(f"{count} {ending}" for ending, count in Counter(campaign.endings).most_common(12)))
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
