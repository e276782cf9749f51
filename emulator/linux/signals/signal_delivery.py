"""Signal delivery: what happens to a task on its way back to user mode when signals are pending."""

from __future__ import annotations

from emulator.linux.arch.architecture import SignalDelivery
from emulator.linux.errors import EFAULT, EINTR, ERESTARTNOHAND, ERESTARTSYS, LinuxError
from emulator.linux.process.limits import RLIMIT_CORE
from emulator.linux.process.task import Task
from emulator.linux.sched.restartable import leave_sequence
from emulator.linux.signals.dequeuing import dequeue
from emulator.linux.signals.signal import (
    SA_NODEFER,
    SA_ONSTACK,
    SA_RESETHAND,
    SA_RESTART,
    SI_KERNEL,
    SIG_DFL,
    SIG_IGN,
    SIGILL,
    SIGSEGV,
    SS_AUTODISARM,
    SS_DISABLE,
    UNBLOCKABLE,
    AlternateStack,
    Default,
    Generated,
    Interrupted,
    SignalAction,
    SignalInfo,
    bit,
    default_action,
)
from emulator.linux.signals.signal_sending import stop

ADDRESSES = (1 << 64) - 1
LEAST_STACK_POINTER = 1 << 14  # bytes: more than any frame takes; nothing is mapped so low (vm.mmap_min_addr)


def force(task: Task, info: SignalInfo) -> None:
    """Post a signal that cannot be kept away: a fault. Blocked or ignored, it kills (force_sig_fault)."""
    signals = task.signals
    if signals.blocked & bit(info.signal) or signals.action(info.signal).handler == SIG_IGN:
        signals.actions.pop(info.signal, None)
        signals.blocked &= ~bit(info.signal)
    task.kernel.tell_generated(task, info, False, Generated.DELIVERED)
    signals.pending.append(info)


def deliver(task: Task, interrupted: Interrupted | None = None) -> None:
    """Act on everything that is pending and not blocked. Each handler gets a frame; the last one's runs first.

    Where that stops the process, the rest waits until it goes on.
    """
    signals = task.signals
    if interrupted is None:
        interrupted = signals.interrupted
    signals.interrupted = None
    if task.tracee is not None:
        task.kernel.return_traced(task, interrupted)
        return
    while task.exit_code is None:
        if task.process.stopped:
            signals.interrupted = interrupted
            return
        info = dequeue(task)
        if info is None:
            break
        action = signals.action(info.signal)
        task.kernel.tell_delivered(task, info, action)
        if action.handler == SIG_IGN:
            continue
        if action.handler == SIG_DFL:
            act_by_default(task, info)
            continue
        if interrupted is not None:
            _restart(task, interrupted, handler_runs=True, restart=bool(action.flags & SA_RESTART))
            interrupted = None
        enter_handler(task, info, action)
    if task.exit_code is not None:
        return
    if interrupted is not None:
        _restart(task, interrupted, handler_runs=False, restart=True)
    if signals.restore_mask is not None:
        signals.blocked, signals.restore_mask = signals.restore_mask, None


def _restart(task: Task, interrupted: Interrupted, *, handler_runs: bool, restart: bool) -> None:
    again = not handler_runs or (restart and interrupted.code == ERESTARTSYS)
    if again:
        task.architecture.rewind_syscall(task.cpu.core, interrupted.number, interrupted.first_argument)
    else:
        task.architecture.set_syscall_result(task.cpu.core, -EINTR)


def is_restart(result: int) -> bool:
    return result in (-ERESTARTSYS, -ERESTARTNOHAND)


def act_by_default(task: Task, info: SignalInfo) -> None:
    action = default_action(info.signal)
    if action in (Default.IGNORE, Default.CONTINUE):
        return
    if action is Default.STOP:
        stop(task.process, info.signal)
        return
    if action is Default.CORE and task.limits.soft(RLIMIT_CORE):
        task.kernel.name_once(f"{task.comm}: signal {info.signal} ends it, and no core file is written")
    if info.signal == SIGILL and info.is_fault:
        task.kernel.dies_of_instruction(task, info.address)
    task.kernel.lifecycle.end_process(task.process, info.signal)


def enter_handler(task: Task, info: SignalInfo, action: SignalAction) -> None:
    signals, core, architecture = task.signals, task.cpu.core, task.architecture
    stack = signals.stack
    own = core.read_register(architecture.sp)
    on_alternate = bool(action.flags & SA_ONSTACK) and not stack.flags & SS_DISABLE and not stack.holds(own)
    shown = stack.address, stack_flags(stack, own), stack.size
    mask = signals.blocked if signals.restore_mask is None else signals.restore_mask
    signals.restore_mask = None
    delivery = SignalDelivery(
        signal=info.signal,
        info=info.pack(),
        handler=action.handler,
        flags=action.flags,
        restorer=action.restorer,
        blocked=mask,
        stack=shown,
        stack_pointer=stack.address + stack.size & ADDRESSES if on_alternate else own,
        trampoline=task.mm.signal_trampoline,
        fault_address=info.address if info.error_code else 0,  # of page faults
        trap_number=info.trap_number,
        error_code=info.error_code,
        resumes=task.kernel.debug_registers[task.cpu.number].has_passed_guests(),
    )
    try:
        if delivery.stack_pointer < LEAST_STACK_POINTER:
            raise LinuxError(EFAULT, f"no frame fits below {delivery.stack_pointer:#x}")
        if task.rseq is not None:
            leave_sequence(task, task.rseq)
        pc = core.pc
        architecture.push_signal_frame(core, delivery, task.mm.write)
    except LinuxError:
        if info.signal == SIGSEGV:
            signals.actions.pop(SIGSEGV, None)
        force(task, SignalInfo(SIGSEGV, SI_KERNEL))
        return
    except MemoryError:
        task.kernel.out_of_memory(task)
        return
    if core.keeps_calls:
        trampoline, above = architecture.caller(core, task.mm.space)
        core.enter_handler(pc, own, trampoline or 0, above)
    if stack.flags & SS_AUTODISARM:
        signals.stack = AlternateStack()
    if action.flags & SA_RESETHAND:
        signals.actions.pop(info.signal, None)
    signals.blocked |= action.mask | (0 if action.flags & SA_NODEFER else bit(info.signal))
    signals.blocked &= ~UNBLOCKABLE


def stack_flags(stack: AlternateStack, stack_pointer: int) -> int:
    """What sigaltstack and a frame show of the alternate stack."""
    if stack.flags & SS_DISABLE:
        return SS_DISABLE
    on_it = 1 if stack.holds(stack_pointer) else 0
    return on_it | stack.flags & SS_AUTODISARM


def return_from_handler(task: Task) -> None:
    """rt_sigreturn(2)"""
    core = task.cpu.core
    try:
        result = task.architecture.pop_signal_frame(core, task.mm.read)
    except LinuxError:
        force(task, SignalInfo(SIGSEGV, SI_KERNEL))
        return
    if core.keeps_calls:
        architecture = task.architecture
        caller, above = architecture.caller(core, task.mm.space)
        core.leave_handler(core.pc, core.read_register(architecture.sp), caller or 0, above)
    task.signals.blocked = result.blocked & ~UNBLOCKABLE
    address, flags, size = result.stack
    task.signals.stack = AlternateStack(address, flags & (SS_DISABLE | SS_AUTODISARM), size)
