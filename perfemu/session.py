"""Session: one run of one program: a Machine, its PMUs and drivers, and the tool's own events. The only assembly point.

Each CPU gets two PMUs: the guest's, as its model has it, and a measuring one with as many counters as the architecture
can have. On each stands a perf_event subsystem of its own; they share nothing but the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, TextIO

from emulator.core_file.layers import is_file
from emulator.linux.errors import ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.instruction_alarm import executed
from emulator.linux.kernel import Kernel
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program, ProgramError, identify
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIGUSR2
from emulator.linux.tty.console import Console
from perfcore.abi.attr import PerfEventAttr
from perfcore.events.clocks import clock_of
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PerfEvent
from perfcore.events.followed import Followed
from perfcore.events.late_probes import LateProbes
from perfcore.events.settings import Settings
from perfcore.events.sideband import records_of_living
from perfcore.events.subsystem import PerfEvents
from perfcore.events.syscall import install_syscall
from perfcore.events.sysfs import TRACEFS
from perfcore.events.within import Within, WithinAll
from perfcore.perfdata.features import Features, JitFile
from perfemu.activity_monitors import announce_to_programs
from perfemu.bpf import install_bpf
from perfemu.cores import core_for, pmu_of
from perfemu.ending import Ending
from perfemu.environment import search_path
from perfemu.errors import PerfemuError, UsageError
from perfemu.event_drivers import all_drivers
from perfemu.events.attributes import user_mode_only
from perfemu.events.parser import parse_events
from perfemu.events.spec import EventSpec
from perfemu.guest import Guest
from perfemu.host_limits import check_address_space, raise_descriptor_limit
from perfemu.interruption import Interruption
from perfemu.jit_files import jit_files
from perfemu.locate import locate
from perfemu.machine_features import machine_features
from perfemu.moments import Span
from perfemu.pmu_kinds import PMU_KINDS, Attached, measuring_counters, pmu_mappings
from perfemu.progress import Limit, Progress
from perfemu.run_times import RunTimes
from perfemu.scope import Scope, WatchedRegion
from perfemu.ticks import InstructionTicks, TimeTicks
from perfemu.undefined.message import UndefinedInstructions
from perfemu.units import caps_of

if TYPE_CHECKING:
    from perfcore.events.probes.definitions import ProbeDefinitions  # only those who probe load that
    from perfemu.cgroups import NamedCgroups
    from perfemu.control import Control, Snapshot, Switch
    from perfemu.user_probes import UserProbes  # ... and a reader of symbols


class Session:
    """One run. Make it, `open` events, `run`; then read what was counted."""

    def __init__(self, guest: Guest) -> None:
        """Find the program. Nothing is built yet, so that a wrong event is reported at once."""
        self.guest = guest
        self.space = guest.space()
        directory = guest.directory(self.space)
        located = locate(guest.command[0], search_path(guest.variables), self.space, directory)
        try:
            self.isa = identify(located.host_path, lambda path: self.space.on_host(path) or path)
        except ProgramError as problem:
            raise PerfemuError(problem.message, problem.exit_status) from None
        self.core = core_for(
            guest.core_name, self.isa, guest.changes(self.isa), units=guest.units, untimed=guest.untimed
        )
        self.pmu_model = pmu_of(self.core, self.isa)
        self._kind = PMU_KINDS[self.pmu_model.driver]
        self._counters = measuring_counters(self.pmu_model, guest.counters)
        self._config = guest.machine(self.isa, self.core)
        self._linux = guest.linux(self.space)
        self._skipped = guest.skipped()
        self._program = guest.program(located.guest_path, directory)
        self._located = located
        self._user_probes: UserProbes | None = None  # if there are any
        self._probes: LateProbes | None = None  # of the tool, once the machine is built
        self.times = RunTimes(0, 0)
        self._machine: LinuxMachine | None = None
        self.guests: Attached | None = None  # the PMUs of its guest, and those of the tool, once the machine is built
        self.measuring: Attached | None = None
        self._events: PerfEvents | None = None
        self._task: Task | None = None
        self.within: Within | None = None  # where alone events count
        self._region: WatchedRegion | None = None
        self._followed: Followed | None = None
        self._cgroups: NamedCgroups | None = None  # that are counted by name
        if self._skipped.anything and self.core.model is None:
            option = "--fast-forward" if self._skipped.functional else "--warmup"
            raise UsageError(f"{option}: core {self.core.title} models nothing that would begin later")

    def parse(self, events: Iterable[str]) -> list[EventSpec]:
        """The events of ``-e`` strings on this core. Raises EventSyntaxError."""
        return parse_events(events, self.pmu_model, self._kind.type, self._probe)

    def _probe(self, text: str, group: int) -> EventSpec:
        """Of a probe in a program."""
        if self._user_probes is None:
            from perfemu.user_probes import UserProbes

            self._user_probes = UserProbes(self.isa, self.space, self._located, self._program.cwd)
        spec = self._user_probes.spec(text, group)
        if self._task is not None:
            self._define_probes()
        return spec

    def _define_probes(self) -> None:
        """On the machine, which has been built."""
        if self._user_probes is not None:
            from perfcore.events.probes.definitions import ProbeDefinitions

            assert self._task is not None
            assert self._probes is not None
            definitions = self._probes.get()
            assert isinstance(definitions, ProbeDefinitions)
            try:
                self._user_probes.define(definitions.events, self._task)
            except LinuxError as problem:
                raise UsageError(problem.why) from None

    @property
    def program(self) -> Program:
        """What is to be run."""
        return self._program

    @property
    def title(self) -> str:
        """The core, and from when on it is modelled."""
        modelled = f", modelled {self._skipped.text}" if self._skipped.anything else ""
        return self.core.title + self.guest.changed_clock + modelled

    @property
    def partly_modelled(self) -> bool:
        """Whether cycles, and what models count, are of less than other events. After the run."""
        return self._skipped.anything and not self.machine.fast_forward.whole_region

    @property
    def pmu_types(self) -> tuple[tuple[int, str], ...]:
        """(attr.type, sysfs name), ascending: perf.data's PMU_MAPPINGS."""
        return pmu_mappings(self.pmu_model)

    @property
    def machine(self) -> LinuxMachine:
        """Built when it is first wanted."""
        if self._machine is None:
            self._machine = self._build()
        return self._machine

    def features(self, command_line: tuple[str, ...]) -> Features:
        """What a recording says of the machine."""
        features = machine_features(self.machine, command_line, self.pmu_types)
        features.pmu_caps = caps_of(self.pmu_model)
        return features

    def symbol_files(self, pids: Iterable[int], mapped_files: Iterable[str]) -> tuple[JitFile, ...]:
        """After the run: what the guest has told of code that it made itself, of these processes and in these files."""
        return jit_files(self.machine.kernel.file_tree.read_whole, pids, mapped_files)

    def build_id(self, path: str) -> bytes | None:
        """The files say it."""
        return None

    def opened_as(self, spec: EventSpec) -> EventSpec:
        """The event that is recorded for `spec`."""
        return user_mode_only(spec)

    def _build(self) -> LinuxMachine:
        raise_descriptor_limit()
        check_address_space(self._config.memory_bytes, self._config.cpus)
        try:
            machine = LinuxMachine(self._config, self._linux, self._skipped)
        except LinuxError as problem:
            raise UsageError(f"--bind: {problem.why}") from None
        except ValueError as problem:  # what the models see, and the core file's schema does not
            name = self.guest.core_name or ""
            name = name if is_file(name) else f"core {self.core.name}"
            raise UsageError(f"{', '.join((name, *self.core.changes))}: {problem}") from None
        kernel = machine.kernel
        kernel.undefined_instruction = UndefinedInstructions(
            self.core.name, kernel.architecture.offers(kernel.processor), self.space
        )
        self.guests = guest = self._kind.attach(machine.cpus, self.pmu_model, self.pmu_model.counters, machine.clock)
        for cpu, pmu in zip(machine.cpus, guest.pmus, strict=True):
            pmu.grant_user_access(cpu.system_registers)
            self._kind.announce(cpu, self.pmu_model)
            if self.isa == "aarch64":
                announce_to_programs(self.core, cpu)
        guests_probes = LateProbes(lambda: _definitions(kernel))
        guests_events = PerfEvents(kernel, all_drivers(kernel, guest.driver, self.pmu_model, guests_probes))
        install_syscall(kernel, guests_events)
        install_bpf(kernel, guests_events.settings)
        self._probes = probes = LateProbes(lambda: _definitions(kernel, measures=True))
        self.measuring = measuring = self._kind.attach(
            machine.cpus, self.pmu_model.without_limits(), self._counters, machine.clock
        )
        drivers = all_drivers(kernel, measuring.driver, self.pmu_model.without_limits(), probes, measures=True)
        self._events = PerfEvents(kernel, drivers, Settings.measuring())
        self._task = kernel.lifecycle.prepare(self._program)
        self._define_probes()
        return machine

    def open(
        self,
        attr: PerfEventAttr,
        cpu: int = -1,
        leader: PerfEvent | None = None,
        *,
        system_wide: bool = False,
        cgroup: str | None = None,
    ) -> PerfEvent:
        """Open an event on the program, or on all that `cpu` does, as perf_event_open(2) would. Raises LinuxError.

        `cgroup`: of all that only what the tasks of the control group of this name do, whenever the guest makes it.
        """
        assert self.machine is not None
        assert self._events is not None, "the machine has been built"
        counted = self._named_cgroups().named(cgroup) if cgroup else None
        return self._events.open(attr, None if system_wide else self._task, cpu, leader, cgroup=counted)

    def _named_cgroups(self) -> NamedCgroups:
        if self._cgroups is None:
            # only who counts some needs them
            from perfemu.cgroups import NamedCgroups

            self._cgroups = NamedCgroups(self.machine.kernel)
        return self._cgroups

    def keep_calls(self) -> None:
        """Callchains will be of the calls that the CPUs see. Before any event is open."""
        for cpu in self.machine.cpus:
            cpu.core.keep_calls()
        assert self._events is not None, "the machine has been built"
        self._events.settings.exact_callchains = True

    def count_within(self, scope: Scope, *, inherit: bool) -> None:
        """Events that will be opened count only within its region, and of its ids. Before any is."""
        if scope.ids is None and scope.region is None:
            return
        kernel = self.machine.kernel
        assert self._events is not None, "the machine has been built"
        parts: list[Within] = []
        if scope.ids is not None:
            self._followed = Followed(kernel, scope.ids, self.program_task, inherit=inherit)
            parts.append(self._followed)
        if scope.region is not None:
            self._region = region = scope.region.watched(kernel, self.isa, self.space)
            region.within.on_moved(lambda task: self.machine.fast_forward.region_began())
            parts.append(region.within)
        self.within = WithinAll(parts)
        self._events.count_within(self.within)

    def check_reached(self) -> None:
        """After the run: say what the user should know of what was to be counted. PerfemuError if it never was."""
        if self._followed is not None and self._followed.missing:
            missing, seen = self._followed.missing[0], self._followed.seen
            raise PerfemuError(f"there was no process or thread {missing}: there were {min(seen)} to {max(seen)}")
        if self._region is not None:
            self._region.check()
            for remark in self._region.remarks():
                self.machine.kernel.name_once(remark)
        if self._cgroups is not None:
            for remark in self._cgroups.remarks():
                self.machine.kernel.name_once(remark)

    def user_probes(self, event: PerfEvent) -> int:
        """The probes that an open event counts in user mode, as a mask; 0 where it is not the PMU's."""
        return event.driver.user_probes(event) if isinstance(event.driver, HardwareDriver) else 0

    @property
    def program_task(self) -> Task:
        """The program's first."""
        assert self.machine is not None
        assert self._task is not None, "the machine has been built"
        return self._task

    def let_cpus_come_to_the_end(self) -> None:
        """Idle CPUs know of no time after their last task: let it pass until the machine's end, so that it counts."""
        self.machine.kernel.scheduler.come_to_the_end()

    def run(self, interruption: Interruption | None = None) -> Ending:
        """Run the program to its end. Leaves by Interrupted when the user wants it; `times` are good then, too."""
        ending = self.run_to_a_pause(interruption)
        assert ending is not None, "nobody pauses it"
        return ending

    def run_to_a_pause(self, interruption: Interruption | None = None) -> Ending | None:
        """The same; None: the machine has been paused before the program's end."""
        if self._skipped.waits_for_region and self._region is None:
            which = "name its function by --from-symbol, or mark it: --marker"
            raise UsageError(f"--fast-forward region, --warmup region: which? {which}")
        machine = self.machine
        task = self._task
        assert task is not None, "the machine has been built"
        try:
            machine.start(self._program)
        except ProgramError as problem:
            raise PerfemuError(problem.message, problem.exit_status) from None
        try:
            with interruption or Interruption():
                machine.run_to_the_end()
            status = machine.kernel.exit_status
            assert machine.paused or status is not None, "the machine ends with its first process"
            return None if status is None else Ending(status, machine.kernel.stopped)
        finally:
            used = task.process.usage() + task.process.waited_usage
            self.times = RunTimes(machine.clock.elapsed_ns() - task.start_time_ns, used.user_ns, used.system_ns)
            self._say_what_was_modelled()

    def _say_what_was_modelled(self) -> None:
        if not self._skipped.anything:
            return
        begun = self.machine.fast_forward.modelled_from
        self.machine.kernel.name_once(
            f"the program ended before it was modelled {self._skipped.text}: cycles and what models count are 0"
            if begun is None
            else f"cycles and what models count begin after {begun[0]:,} instructions, in cycle {begun[1]:,}"
        )

    def elapsed_ns(self) -> int:
        """Simulated time since the program's beginning, of the CPU that executes."""
        return self.machine.clock.elapsed_ns() - self.program_task.start_time_ns

    def every(self, span: Span, call: Callable[[], bool]) -> None:
        """Call it whenever so much has passed since now, until it returns False."""
        (TimeTicks if span.ns else InstructionTicks)(self.machine, span.length, call)

    def realtime_ns(self) -> int:
        """Of the guest's clock, since 1970."""
        return self.machine.clock.realtime_ns()

    def clock_ns(self, clockid: int) -> int:
        """Of one of its clocks, by clockid_t."""
        return clock_of(clockid, self.machine.clock, any_clock=True)()

    def stop(self, why: str) -> None:
        """End the run soon, between two instructions: from within what only observes."""
        kernel = self.machine.kernel
        cpu = kernel.executing_cpu
        kernel.add_timer(cpu.core.cycles, lambda: kernel.stop(why), cpu)

    def obey(self, control: Control, switch: Switch, snapshot: Snapshot | None) -> None:
        """Before the run: the guest's orders are heard."""

        # only who is ordered about needs it
        from perfemu.control import Orders

        stop = partial(self.stop, "the guest has asked for it (--control)")
        Orders(self.machine.kernel, control, switch, stop, snapshot)

    def on_signal(self, call: Callable[[], object]) -> None:
        """Call it whenever the guest sends SIGUSR2 to its parent, which we are, as perf is."""

        kernel, others = self.machine.kernel, self.machine.kernel.outside_hears

        def heard(pid: int, signal: int) -> bool:
            if (pid, signal) != (self.program_task.ppid, SIGUSR2):
                return False
            others(pid, signal)
            call()
            return True

        kernel.outside_hears = heard

    def living(self, event: PerfEvent) -> bytes:
        """The records that `event` would have of the tasks that there are now, and of what they have mapped."""
        return b"".join(records_of_living(event, self.machine.kernel.tasks.values()))

    def instructions(self) -> int:
        """How many the guest has executed. Not while it runs."""
        return executed(self.machine.cpus)

    @property
    def console(self) -> Console:
        """The user's terminal, as the guest has it."""
        return self.machine.kernel.file_tree.console

    def limits(self) -> list[Limit]:
        """Where the run ends, if the program does not before."""
        clock, config = self.machine.clock, self._config
        asked = ((self._progress, config.most_instructions), (clock.elapsed_ns, config.most_ns))
        return [Limit(reached, most) for reached, most in asked if most is not None]

    def showing_progress(self, stream: TextIO | None) -> AbstractContextManager[object]:
        """While entered, a line on `stream` says how far the run is; None: nobody looks."""
        return nullcontext() if stream is None else Progress(stream, self._progress, self.console, self.limits())

    def _progress(self) -> int:
        """How many instructions the guest had executed a moment ago; may be asked at any time."""
        return sum(cpu.core.progress for cpu in self.machine.cpus)


def _definitions(kernel: Kernel, *, measures: bool = False) -> ProbeDefinitions:
    from perfcore.events.probes.definitions import ProbeDefinitions

    return ProbeDefinitions(kernel, TRACEFS, kernel.clock.monotonic_ns, measures=measures)


def cannot_know(error: LinuxError) -> bool:
    """Whether an open failed because the event is not supported, rather than wrong."""
    return error.code in (ENOENT, EOPNOTSUPP)
