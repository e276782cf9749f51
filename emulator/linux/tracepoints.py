"""Tracepoints: everything that Linux does and others want to hear. The software way for news to travel upward."""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.mm.mapping import Mapping
from emulator.linux.process.task import Process, Task
from emulator.linux.recursion import RecursionContexts
from emulator.linux.sched.hrtimers import HrTimerTracepoints
from emulator.linux.signals.signal import Generated, SignalAction, SignalInfo
from emulator.linux.tracepoint import Tracepoint


class Tracepoints:
    """One attribute per occurrence, each with its arguments."""

    def __init__(self) -> None:
        self.recursion = RecursionContexts()
        self.task_fork: Tracepoint[[Task, Task]] = Tracepoint()
        """(parent, child)"""
        self.task_newtask: Tracepoint[[Task, Task, int]] = Tracepoint()
        """(parent, child, CLONE_*), after task_fork"""
        self.sched_process_fork: Tracepoint[[Task, Task]] = Tracepoint()
        """(parent, child), after that"""
        self.sched_process_wait: Tracepoint[[Task, int]] = Tracepoint()
        """(task, the process or group for which it begins to wait; 0: any)"""
        self.task_rename: Tracepoint[[Task, str]] = Tracepoint()
        """(task, the name that it will have)"""
        self.task_exit: Tracepoint[[Task]] = Tracepoint()
        """(task); its memory and files are still there"""
        self.task_comm: Tracepoint[[Task, bool]] = Tracepoint()
        """(task, by exec)"""
        self.sched_process_exec: Tracepoint[[Task]] = Tracepoint()
        """(task); it has the new program, and everybody has been told its new name"""
        self.task_exec: Tracepoint[[Task]] = Tracepoint()
        """(task); after its old memory went, before the new program is mapped"""
        self.mmap: Tracepoint[[Task, Mapping]] = Tracepoint()
        """(task, what mmap, exec, brk or the stack mapped)"""
        self.page_fault: Tracepoint[[Task, int, bool | None, bool]] = Tracepoint()
        """(task, address, major or None where the access failed, by user mode rather than in the kernel's own copy)"""
        self.page_fault_entry: Tracepoint[[Task, int, int, bool, bool]] = Tracepoint()
        """(task, address, PROT_* of the access, whether a page is there, by user mode), at first"""
        self.sched_in: Tracepoint[[Task, Cpu]] = Tracepoint()
        self.sched_out: Tracepoint[[Task, Cpu, Task | None]] = Tracepoint()
        """(task, CPU, who comes next if that is known)"""
        self.sched_switch: Tracepoint[[Cpu, Task | None, Task | None, bool]] = Tracepoint()
        """(CPU, who leaves, who comes, whether the former could have gone on); None: nobody, the CPU idles"""
        self.sched_idle: Tracepoint[[Cpu]] = Tracepoint()
        """(CPU); its task has left it, and nobody comes for now"""
        self.sched_waking: Tracepoint[[Task, Cpu]] = Tracepoint()
        """(task that is to wake, the CPU on which it was last)"""
        self.sched_wakeup_new: Tracepoint[[Task, Cpu]] = Tracepoint()
        """(a task that is new, the CPU on which it will run)"""
        self.sched_wakeup: Tracepoint[[Task, Cpu]] = Tracepoint()
        """(task, the CPU on which it will run)"""
        self.sched_migrate_task: Tracepoint[[Task, Cpu, Cpu]] = Tracepoint()
        """(task, the CPU that it was on, the one that it has just come to)"""
        self.sched_stat_runtime: Tracepoint[[Task, Cpu, int]] = Tracepoint()
        """(task that leaves, its CPU, for how many cycles it has had that)"""
        self.sched_stat_wait: Tracepoint[[Task, Cpu, int]] = Tracepoint()
        """(task that has come, its CPU, for how many cycles it could have run and did not)"""
        self.sched_stat_sleep: Tracepoint[[Task, Cpu, int]] = Tracepoint()
        """(task that wakes, the CPU on which it will run, for how many cycles it slept), where a signal could end it"""
        self.sched_stat_blocked: Tracepoint[[Task, Cpu, int]] = Tracepoint()
        """... where none could"""
        self.sched_stat_iowait: Tracepoint[[Task, Cpu, int]] = Tracepoint()
        """... and a device was waited for: never, the bytes of files are there at once"""
        self.cgroup_mkdir: Tracepoint[[Task, Cgroup]] = Tracepoint()
        """(who makes it, the new one)"""
        self.cgroup_attach_task: Tracepoint[[Task]] = Tracepoint()
        """(task that is in another one now)"""
        self.bpf_program: Tracepoint[[Cpu, bool, int, bytes]] = Tracepoint()
        """(CPU that works for it, whether a BPF program is loaded or ends, its number, its tag)"""
        self.cpu_idle: Tracepoint[[Cpu, bool]] = Tracepoint()
        """(CPU, whether it begins to idle or has)"""
        self.itimer_state: Tracepoint[[Task, int, int, int]] = Tracepoint()
        """(task, ITIMER_*, value in ns, interval in ns): setitimer"""
        self.itimer_expire: Tracepoint[[Process, int]] = Tracepoint()
        """(process, ITIMER_*)"""
        self.hrtimer = HrTimerTracepoints()
        self.signal_generate: Tracepoint[[Task, SignalInfo, bool, Generated]] = Tracepoint()
        """(task that is to get it, signal, whether it is its process's, what becomes of it)"""
        self.signal_deliver: Tracepoint[[Task, SignalInfo, SignalAction]] = Tracepoint()
        """(task, signal that is acted on now, how)"""
        self.sys_enter: Tracepoint[[Task, int, tuple[int, ...]]] = Tracepoint()
        """(task, number, six arguments)"""
        self.sys_exit: Tracepoint[[Task, int, int]] = Tracepoint()
        """(task, number, result or negative errno)"""
