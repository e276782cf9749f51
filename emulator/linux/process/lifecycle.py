"""Lifecycle: how processes and threads come to be, change their program, and end."""

from __future__ import annotations

from typing import Protocol

from emulator.core_file.core_file import KernelCosts
from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import Cgroups
from emulator.linux.errors import EAGAIN, ENOENT, LinuxError
from emulator.linux.fs.file import DescriptorRoom, FileTable
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.mm.mapping import PAGE_SIZE, Mapping
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.cloning import CLONE_THREAD, CLONE_VM, child_registers, new_task, write_tids
from emulator.linux.process.credentials import Credentials
from emulator.linux.process.init import make_init
from emulator.linux.process.limits import RLIMIT_NOFILE, RLIMIT_STACK
from emulator.linux.process.loader import Executable, Loader
from emulator.linux.process.program import NOT_EXECUTABLE, NOT_FOUND, Program, ProgramError
from emulator.linux.process.task import INIT, CloneRequest, FileContext, KernelServices, Process, Task
from emulator.linux.ptrace import links
from emulator.linux.ptrace.abi import PtraceEvent
from emulator.linux.ptrace.children import trace_child
from emulator.linux.ptrace.stops import note
from emulator.linux.sched.dispatcher import Dispatcher
from emulator.linux.signals.signal import (
    CLD_EXITED,
    CLD_KILLED,
    SA_NOCLDWAIT,
    SI_USER,
    SIG_IGN,
    SIGCHLD,
    SIGKILL,
    SignalInfo,
)
from emulator.linux.signals.signal_sending import child_info, retarget
from emulator.linux.tracepoints import Tracepoints
from emulator.linux.tty.terminals import Terminals

BYTES_PER_DESCRIPTOR = 1024  # of the machine's memory: so many descriptors there may be
FIRST_PID = 1000  # of the program; its parent, which nobody sees, is 999; 1 is init
COMM_BEFORE_EXEC = "perfemu-exec"


class Kernel(KernelServices, Protocol):
    """What making and ending tasks needs (a ``Kernel``)."""

    exit_status: int | None  # wait status word of the first process, which is the machine's

    @property
    def costs(self) -> KernelCosts: ...
    @property
    def cgroups(self) -> Cgroups: ...
    @property
    def file_tree(self) -> FileTree: ...
    @property
    def tracepoints(self) -> Tracepoints: ...
    @property
    def dispatcher(self) -> Dispatcher: ...
    @property
    def terminals(self) -> Terminals: ...

    def current(self, cpu: Cpu) -> Task | None: ...

    def work(self, task: Task, cycles: int) -> None:
        """The kernel works for a task."""


class Lifecycle:
    """Makes and ends the tasks of one kernel. `most_tasks`: so many there may be, ended ones included."""

    def __init__(self, kernel: Kernel, loader: Loader, most_tasks: int) -> None:
        self._kernel = kernel
        self._loader = loader
        self._most_tasks = most_tasks
        self._first: Task | None = None
        self._last_tid = FIRST_PID

    @property
    def first(self) -> Task:
        """The main thread of the machine's first process."""
        assert self._first is not None, "the machine has no process yet"
        return self._first

    @property
    def last_tid(self) -> int:
        """The tid of who was made last, who may be gone."""
        return self._last_tid

    # ---- the first process

    def prepare(self, program: Program) -> Task:
        """The first process before its execve: an identity and files, and no memory. `start` calls this if need be."""
        if self._first is not None:
            return self._first
        kernel = self._kernel
        console = kernel.file_tree.console
        console.foreground, console.session = FIRST_PID, FIRST_PID - 1
        files = FileTable(room=DescriptorRoom(kernel.memory.size_bytes // BYTES_PER_DESCRIPTOR))
        for number, descriptor in enumerate((program.stdin, program.stdout, program.stderr)):
            if descriptor >= 0:
                files.install_at(number, kernel.file_tree.standard_stream(descriptor, program.interactive))
        kernel.file_tree.allow_writing(program.cwd)
        process = Process(FIRST_PID, None, orphan_ppid=FIRST_PID - 1, pgid=FIRST_PID, sid=FIRST_PID - 1)
        task = Task(
            tid=FIRST_PID,
            process=process,
            comm=COMM_BEFORE_EXEC,
            mm=self._loader.new_memory_map(),
            files=files,
            fs=FileContext(kernel.file_tree, program.cwd),
            kernel=kernel,
            cpu=kernel.cpus[0],
            cgroup=kernel.cgroups.root,
            start_time_ns=kernel.clock.elapsed_ns(),
            affinity=(1 << len(kernel.cpus)) - 1,
            credentials=Credentials(*kernel.file_tree.superblock.user),
        )
        process.leader = task
        process.threads.append(task)
        kernel.tasks[INIT] = make_init(task, self._loader.new_memory_map())
        task.cgroup.take_in(task)
        files.limit = task.limits.soft(RLIMIT_NOFILE)
        kernel.tasks[task.tid] = self._first = task
        kernel.dispatcher.begin(task)
        return task

    def start(self, program: Program) -> None:
        """Make the first process and stop it at its first instruction. Raises ProgramError."""
        task = self.prepare(program)
        argv = tuple(_encode(argument) for argument in program.argv)
        environment = tuple(_encode(f"{name}={value}") for name, value in program.environment)
        try:
            executable = self._loader.prepare(task, self._kernel.file_tree, program.path, program.cwd, argv)
            self._replace(task, executable, environment, program.path)
        except LinuxError as error:
            status = NOT_FOUND if error.code == ENOENT else NOT_EXECUTABLE
            raise ProgramError(error.why or f"{program.path}: {error.name}", status) from None
        except MemoryError:
            raise ProgramError(f"{program.path}: does not fit the machine's memory", NOT_EXECUTABLE) from None
        self._kernel.dispatcher.start(task)

    # ---- execve

    def execute(self, task: Task, path: str, argv: list[bytes], environment: list[bytes]) -> None:
        """execve(2): raises LinuxError while the old program can go on; then there is no way back."""
        executable = self._loader.prepare(task, self._kernel.file_tree, path, task.fs.cwd, tuple(argv))
        try:
            self._replace(task, executable, tuple(environment), path)
        except (LinuxError, MemoryError) as error:
            self._kernel.name_once(f"{path}: execve failed when the old program was gone: {error}")
            self.end_process(task.process, SIGKILL)

    def _replace(self, task: Task, executable: Executable, environment: tuple[bytes, ...], path: str) -> None:
        """The point of no return of execve."""
        kernel, process, old_tid = self._kernel, task.process, task.tid
        self._end_other_threads(task)
        new = self._loader.new_memory_map()
        new.stack_limit = task.limits.soft(RLIMIT_STACK)
        self._watch(new)
        self._release_memory(task)
        task.mm = new
        process.mm_released.wake()
        process.executable = executable.content.identity.path
        process.has_executed = True
        if task.ptrace_breakpoints is not None:
            task.ptrace_breakpoints.flush()
        kernel.tracepoints.task_exec.fire(task)
        kernel.rename(task, path.rpartition("/")[2], by_exec=True)
        task.credentials = task.credentials.after_exec()
        ids = task.credentials.uid, task.credentials.gid
        loaded = self._loader.load(executable, new, environment, path, ids)
        task.signals.reset_for_exec()
        task.rseq = None
        for number in list(task.posix_timers):
            task.process.delete_timer(number)
        self.unshare_files(task)
        task.files.close_on_exec()
        task.cpu.set_address_space(new.space)
        task.cpu.core.begin_calls()
        kernel.architecture.start_program(task.cpu.core, loaded.entry, loaded.stack_pointer)
        note(task, PtraceEvent.EXEC, old_tid)

    def _end_other_threads(self, task: Task) -> None:
        """Of all threads this one stays, as the main thread with the process's number (de_thread)."""
        process = task.process
        for thread in list(process.threads):
            if thread is not task:
                self._end_task(thread, 0)
        leader = process.leader
        if leader is not task:
            if leader is not None and leader.tracer is not None:
                links.forget(leader)
            before = task.tid
            del self._kernel.tasks[before]
            task.tid = process.pid
            self._kernel.tasks[task.tid] = process.leader = task
            links.renumber(task, before)

    def unshare_files(self, task: Task) -> None:
        """Descriptors of its own, where other tasks have them, too."""
        shared = task.files
        if shared.is_shared:
            task.files = shared.copy()
            shared.release()

    def _release_memory(self, task: Task) -> None:
        """mm_release: what others wait for in memory that the task leaves."""
        self._kernel.futexes.forget(task)
        self._kernel.futexes.clear_tid(task)
        task.mm.release()

    def _watch(self, mm: MemoryMap) -> None:
        """Turn what the memory map tells into tracepoints, of whichever task the machine works for."""
        kernel = self._kernel
        points = kernel.tracepoints
        mapped, entered, faulted = points.mmap, points.page_fault_entry, points.page_fault
        dispatcher = kernel.dispatcher

        def on_map(mapping: Mapping) -> None:
            task = dispatcher.executing.current
            if mapped and task is not None:
                mapped.fire(task, mapping)

        def on_fault(address: int, major: bool | None, user: bool) -> None:
            task = dispatcher.executing.current
            if task is None:
                return
            kernel.work(task, kernel.costs.fault)
            if faulted:
                faulted.fire(task, address, major, user)

        def on_page(major: bool) -> None:
            task = dispatcher.executing.current
            if task is not None:
                task.major_faults += major
                task.minor_faults += not major

        def on_written(page: int) -> None:
            task = dispatcher.executing.current
            if task is not None and task.cpu.space is mm.space:
                task.cpu.core.place_page(page)

        def on_access(address: int, access: int, user: bool) -> None:
            task = dispatcher.executing.current
            if entered and task is not None:
                is_there = bool(mm.space.present(address & -PAGE_SIZE, 1))
                entered.fire(task, address, access, is_there, user)

        mm.on_map, mm.on_access, mm.on_fault, mm.on_page = on_map, on_access, on_fault, on_page
        mm.hear_written_pages(on_written)

    # ---- clone

    def clone(self, parent: Task, request: CloneRequest) -> Task:
        """A new thread or process, which goes on where the parent's system call returns 0. Raises LinuxError."""
        kernel = self._kernel
        if len(kernel.tasks) > self._most_tasks:  # init, who is there besides, is nobody's
            kernel.name_once(f"{parent.comm}: no task more than {self._most_tasks} (--max-tasks): EAGAIN")
            raise LinuxError(EAGAIN, f"{len(kernel.tasks)} tasks: the machine has as many as it may")
        kernel.check_fork(parent, bool(request.flags & CLONE_THREAD))
        if not request.flags & CLONE_VM:
            mm = parent.mm.fork()
            self._watch(mm)
        else:
            mm = parent.mm
            mm.retain()
        self._last_tid += 1
        try:
            write_tids(parent.mm, mm, request, self._last_tid)
            child = new_task(parent, request, self._last_tid, mm)
        except (LinuxError, MemoryError):
            mm.release()
            raise
        child.process.threads.append(child)
        child.cgroup.take_in(child)
        kernel.tasks[child.tid] = child
        child.registers = child_registers(parent, request)
        if parent.tracee is not None:
            trace_child(parent, child, request)
        kernel.hrtimers.forked(child.tid, is_process=child.process.pid == child.tid)
        kernel.tracepoints.task_fork.fire(parent, child)
        kernel.tracepoints.task_newtask.fire(parent, child, request.flags)
        kernel.tracepoints.sched_process_fork.fire(parent, child)
        kernel.dispatcher.add(child)
        return child

    # ---- the end

    def end_thread(self, task: Task, status: int) -> None:
        """exit(2): one thread ends; with the last one its process does."""
        process = task.process
        if len(process.threads) == 1:
            leader = process.leader
            assert leader is not None, "every process has a main thread"
            self.end_process(process, status if leader.exit_code is None else leader.exit_code)
        else:
            self._end_task(task, status)
            retarget(process)

    def _end_task(self, task: Task, status: int) -> None:
        if task.exit_code is not None:
            return
        kernel = self._kernel
        task.exit_code = status
        call, task.call = task.call, None
        if call is not None and call.timer is not None:
            call.timer.cancel()
        kernel.tracepoints.task_exit.fire(task)
        if task.ptrace_breakpoints is not None:
            task.ptrace_breakpoints.flush()
        task.process.ended_usage += task.usage()
        task.process.threads.remove(task)
        task.signals.shared.forget(task.signals)
        task.cgroup.let_go(task)
        kernel.dispatcher.remove(task)
        if call is not None:
            call.generator.close()
        self._release_memory(task)
        task.process.mm_released.wake()
        task.files.release()
        if task is not task.process.leader:
            del kernel.tasks[task.tid]
            links.thread_ended(task, status)
        if task.tracees:
            links.tracer_ends(task)

    def end_process(self, process: Process, status: int) -> None:
        """All threads end, in the order of their tids; the process stays a zombie until its parent waits for it."""
        if process.exit_status is not None:
            return
        process.exit_status = status
        for timer in (*process.interval_timers.values(), *process.posix_timers.timers()):
            timer.cancel()
        for thread in list(process.threads):
            self._end_task(thread, status)
        self._kernel.ipc.semaphores.undo(process, process.pid)
        process.ended.wake()
        if process.sid == process.pid:
            self._kernel.terminals.session_ends(process.sid)
        self._leave_children(process)
        if process is self.first.process:
            self._kernel.exit_status = status
            self._end_all()
        elif not links.process_ended(process):
            self.tell_end(process)

    def tell_end(self, process: Process) -> None:
        """To the parent; of a process that has none nothing is left."""
        if process.parent is None:
            self._forget(process)
        else:
            self._tell_parent(process, process.parent)

    def _leave_children(self, process: Process) -> None:
        """Children go to the nearest subreaper above, or to init; who wanted to hear of their parent's end does."""
        above = process.parent
        while above is not None and (not above.is_subreaper or above.exit_status is not None):
            above = above.parent
        children = list(process.children.values())
        process.children.clear()
        for child in children:
            child.parent = above
            leader = child.leader
            if child.exit_status is None:
                if above is not None:
                    above.children[child.pid] = child
                if leader is not None and leader.parent_death_signal:
                    info = SignalInfo(leader.parent_death_signal, SI_USER, pid=process.pid)
                    self._kernel.signal_process(child, info)
            elif above is not None:
                above.children[child.pid] = child
            if child.exit_status is not None and not links.is_traced_by_stranger(child):
                self.tell_end(child)

    def _end_all(self) -> None:
        """The machine ends with its first process, and what still runs with it."""
        for task in list(self._kernel.tasks.values()):
            if not task.process.is_init:
                self.end_process(task.process, SIGKILL)

    def _tell_parent(self, process: Process, parent: Process) -> None:
        """SIGCHLD with what happened; a parent that does not want to know has nobody to wait for (do_notify_parent)."""
        status, leader = process.exit_status, parent.leader
        assert status is not None, "it has ended"
        assert leader is not None, "every process has a main thread"
        action = leader.signals.action(SIGCHLD)
        traced = process.leader is not None and process.leader.tracer is not None
        ignored = action.handler == SIG_IGN
        nobody_waits = process.exit_signal == SIGCHLD and not traced and (ignored or bool(action.flags & SA_NOCLDWAIT))
        unsaid = nobody_waits and ignored  # also to a tracer of the parent, who sees other signals that it ignores
        if process.exit_signal and parent.exit_status is None and not unsaid:
            signal = status & 0x7F
            code = CLD_KILLED if signal else CLD_EXITED  # CLD_DUMPED never: no core is written
            self._kernel.signal_process(parent, child_info(process, process.exit_signal, code, signal or status >> 8))
        parent.child_ended.wake()
        if nobody_waits:
            self.reap(process)

    def reap(self, child: Process) -> None:
        """An ended child has been waited for: nothing of it is left but what it used."""
        parent = child.parent
        assert parent is not None, "only a parent waits"
        parent.waited_usage += child.ended_usage + child.waited_usage
        del parent.children[child.pid]
        self._forget(child)

    def _forget(self, process: Process) -> None:
        self._kernel.tasks.pop(process.pid, None)
        process.reaped = True
        process.ended.wake()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
