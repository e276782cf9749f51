"""Who executes on which CPU, and when, does not depend on what is measured: by task or CPU, by count or by time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.assembled import program
from end_to_end.test_many_tasks import FORKS
from guests import ISAS
from perfcore.events.ring_buffer import RingBuffer
from perfemu.counters import enable_groups, open_counters
from perfemu.events.attributes import Sampling, record_attrs, user_mode_only
from perfemu.file_limits import RING_BUFFER_PAGES
from perfemu.guest import Guest
from perfemu.recorder import open_sampling
from perfemu.session import Session
from unit.linux_process.test_sharing import SOURCE

CPUS = 3
Schedule = list[tuple[str, int, int, int]]  # what happened: to which task, on which CPU, at which cycle


def schedule(settings: Guest, event: str = "", sampling: Sampling | None = None) -> Schedule:
    """Of a run that counts or samples `event`."""
    session = Session(settings)
    found: Schedule = []
    tracepoints = session.machine.kernel.tracepoints
    tracepoints.sched_in.subscribe(lambda task, cpu: found.append(("in", task.tid, cpu.number, cpu.core.cycles)))
    tracepoints.sched_out.subscribe(lambda task, cpu, _: found.append(("out", task.tid, cpu.number, cpu.core.cycles)))
    specs = session.parse([event] if event else [])
    if sampling is None:
        open_counters(session, specs)
    else:
        attrs = record_attrs([user_mode_only(spec) for spec in specs], replace(sampling, cpu=True))
        for cpu in range(CPUS):
            events = open_sampling(session, specs, attrs, cpu, system_wide=sampling.system_wide)
            buffer = RingBuffer.allocate(RING_BUFFER_PAGES)
            for each in events:
                each.attach_buffer(buffer)
            if sampling.system_wide:
                enable_groups(events)
    session.run()
    return found


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_tasks_take_the_same_turns_whatever_is_measured(isa: str, seed: int | None, tmp_path: Path) -> None:
    path = program(tmp_path / "forks", isa, FORKS[isa])
    settings = Guest((str(path),), core="ideal", stdin=-1, stdout=-1, stderr=-1, cpus=CPUS, quantum=500, seed=seed)
    alone = schedule(settings)
    assert len({cpu for _, _, cpu, _ in alone}) == CPUS
    watched = [
        schedule(settings, event, sampling)
        for event, sampling in (
            ("instructions", None),
            ("task-clock", None),
            *(
                ("instructions", Sampling(None, period, system_wide=system_wide))
                for period in (1000, 777, 61)
                for system_wide in (False, True)
            ),
            ("cycles", Sampling(40_000)),
            ("cpu-clock", Sampling(None, 10_007)),
            ("cpu-clock:uk", Sampling(None, 10_007, system_wide=True)),
            ("sched:sched_switch", Sampling(None, 1)),
        )
    ]
    assert [run == alone for run in watched] == [True] * len(watched)
    assert schedule(replace(settings, max_instructions=10**7, timeout=1)) == alone


def test_turns_that_coherence_shortens_do_so_whatever_is_measured(tmp_path: Path) -> None:
    """Two threads that write to one line, on a core with caches."""
    path = build(SOURCE, "aarch64", tmp_path / "sharing")
    settings = Guest((str(path), "32"), core="cortex-a55", stdin=-1, stdout=-1, stderr=-1, cpus=CPUS)
    alone = schedule(settings)
    for event, sampling in (
        ("instructions", Sampling(None, 777)),
        ("cycles", Sampling(None, 999, system_wide=True)),
        ("cpu-clock", Sampling(None, 10_007)),
    ):
        assert schedule(settings, event, sampling) == alone
