"""Init: the process 1, whom orphans call their parent. It is root's and sleeps: nothing executes, no signal ends it."""

from __future__ import annotations

from emulator.linux.fs.file import DescriptorRoom, FileTable
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import INIT, FileContext, Process, Task, TaskState

EXECUTABLE = "/sbin/init"


def make_init(first: Task, memory: MemoryMap) -> Task:
    """As it has been there since the machine began; `first` is the program's task, `memory` an empty one."""
    clock = first.kernel.clock
    process = Process(INIT, None, orphan_ppid=0, pgid=INIT, sid=INIT, executable=EXECUTABLE, has_executed=True)
    task = Task(
        tid=INIT,
        process=process,
        comm="init",
        mm=memory,
        files=FileTable(room=DescriptorRoom(0)),
        fs=FileContext(first.fs.system, "/"),
        kernel=first.kernel,
        cpu=first.cpu,
        cgroup=first.cgroup,
        start_time_ns=clock.elapsed_ns() - clock.monotonic_ns(),
        affinity=first.affinity,
        state=TaskState.SLEEPING,
    )
    process.leader = task
    process.threads.append(task)
    task.cgroup.take_in(task)
    return task
