"""The verifier: follows every way through a program, and refuses what it cannot prove to be safe.

As kernel/bpf/verifier.c it keeps states where ways meet, and does not follow one again that an earlier one covers.
It is simpler, and refuses more: it looks at fewer instructions, numbers have bounds of 64 bits only, every number is
compared whether it matters or not, and there are no types of the kernel's own (BTF), no tail calls, packets, locks,
timers and iterators.
"""

from __future__ import annotations

from emulator.linux.errors import E2BIG, EACCES
from perfcore.bpf.helpers.table import ALL_HELPERS
from perfcore.bpf.instructions import (
    ALU,
    ALU64,
    ATOMIC,
    ATOMIC_OPERATIONS,
    CALL,
    CMPXCHG,
    EXIT,
    FETCH,
    FRAME_POINTER,
    FRAMES,
    JA,
    JMP,
    JMP32,
    LDX,
    LOAD_IMM64,
    MEM,
    MEMSX,
    PSEUDO_FUNC,
    ST,
    STACK_BYTES,
    Instruction,
)
from perfcore.bpf.refusal import Refusal, malformed, unsafe
from perfcore.bpf.verifier import scalar
from perfcore.bpf.verifier.accesses import change, load, store
from perfcore.bpf.verifier.arithmetic import alu
from perfcore.bpf.verifier.calls import Call
from perfcore.bpf.verifier.jumps import branch, check_goto
from perfcore.bpf.verifier.liveness import live_registers
from perfcore.bpf.verifier.state import NOT_INIT, Frame, Kind, Reg, State, number
from perfcore.bpf.verifier.structure import Flow, callees, check_opcodes, functions
from perfcore.bpf.verifier.subject import Subject

MOST_PROCESSED = 100_000  # instructions: seconds of the host's time. Linux looks at ten times as many
_MOST_WORK = 3  # for each of them: of states that are kept and compared, and of lines of the log
_MOST_WAITING = 8192  # BPF_COMPLEXITY_LIMIT_JMP_SEQ
_MOST_ARGUMENTS = 5
_KEPT_EVERY = 16  # instructions, at most: states are kept where ways meet
_MISSES = 3  # for each hit: a state that covers nothing is not asked for ever


class Verifier:
    """One program."""

    def __init__(self, subject: Subject) -> None:
        """Raises Refusal where the program is malformed."""
        self._subject = subject
        self._instructions = subject.instructions
        self.entries = functions(subject.instructions)
        self._callees = callees(subject.instructions, self.entries)
        self._flow = Flow(subject.instructions, self.entries)
        self._live = live_registers(subject.instructions, self._flow.successors, _arguments)
        self._kept: dict[int, list[State]] = {}
        self._waiting: list[State] = []
        self._depths = dict.fromkeys(self.entries, 0)  # of functions: bytes of stack
        self.processed = 0
        self.states = 0
        self._handlers = {
            ALU: self._alu,
            ALU64: self._alu,
            JMP: self._jump,
            JMP32: self._jump,
            LDX: self._load,
            ST: self._store,
            ST + 1: self._store,
            0: self._load_immediate,
        }

    def verify(self) -> None:
        """Raises Refusal."""
        main = Frame.new(0, 0, 0)
        main.regs[1] = Reg(Kind.CTX)
        self._waiting.append(State([main]))
        try:
            while self._waiting:
                self._follow(self._waiting.pop())
            self._check_depth(0, 1, {})
        finally:
            self._subject.log.statistics(
                f"processed {self.processed} insns (limit {MOST_PROCESSED}) max_states_per_insn "
                f"{max(map(len, self._kept.values()), default=0)} total_states {self.states} "
                f"peak_states {self.states} mark_read 0"
            )

    def _check_depth(self, entry: int, frames: int, found: dict[tuple[int, int], tuple[int, int]]) -> tuple[int, int]:
        """Calls and bytes of stack below a function, its own included. check_max_stack_depth()"""
        known = found.get((entry, frames))
        if known is not None:
            return known
        if frames > FRAMES:
            raise Refusal(E2BIG, f"the call stack of {frames - 1} frames is too deep !")
        below = [self._check_depth(callee, frames + 1, found) for callee in self._callees[entry]]
        count, depth = max(below, key=lambda each: each[1], default=(0, 0))
        depth += -(-max(self._depths[entry], 1) // 32) * 32
        if depth > STACK_BYTES:
            raise Refusal(EACCES, f"combined stack size of {count + 1} calls is {depth}. Too large")
        found[entry, frames] = count + 1, depth
        return count + 1, depth

    def _follow(self, state: State) -> None:
        """One way to its end."""
        log = self._subject.log
        detailed = log.detailed
        if log.wanted:
            self._tell(f"{state.pc}: {state.describe()}")
        current: State | None = state
        while current is not None:
            pc = current.pc
            if self.processed >= MOST_PROCESSED or self._subject.work >= _MOST_WORK * MOST_PROCESSED:
                raise Refusal(E2BIG, f"BPF program is too large. Processed {self.processed} insn")
            if (pc in self._flow.joins or self._calls_back(pc)) and self._is_covered(current):
                self._ended(current)
                return
            self.processed += 1
            self._subject.work += 1
            instruction = self._instructions[pc]
            if log.wanted:
                self._tell(f"{pc}: ({instruction.opcode:02x}) {_text(instruction)}")
            following = self._handlers[instruction.cls](current, instruction)
            if following is None:
                self._ended(current)
            elif detailed:
                self._tell(f"{following.pc}: {following.describe()}")
            current = following

    def _tell(self, text: str) -> None:
        self._subject.work += len(text) >> 5  # 32 characters take as long as an instruction
        self._subject.log.line(text)

    # ---- states that have been seen

    def _calls_back(self, pc: int) -> bool:
        instruction = self._instructions[pc]
        if instruction.cls != JMP or instruction.operation != CALL or instruction.src:
            return False
        row = ALL_HELPERS.get(instruction.imm)
        return row is not None and row.calls_back

    def _is_covered(self, state: State) -> bool:
        """Whether a state that was found safe covers this one. Else it is kept, for those that come."""
        kept = self._kept.setdefault(state.pc, [])
        live = self._live[state.pc]
        self._subject.work += len(kept) * state.size >> 4
        again = self._calls_back(state.pc)
        for old in list(kept):
            covered = old.covers(state, live)
            if covered and (not old.branches or again):
                old.hits += 1
                return True
            if covered and state.covers(old, live):
                raise malformed(f"infinite loop detected at insn {state.pc}")
            old.misses += 1
            if old.misses > _MISSES * (old.hits + 1):
                kept.remove(old)
        if again or not kept or self.processed - state.kept_at >= _KEPT_EVERY:
            self._keep(state, kept)
        return False

    def _keep(self, state: State, kept: list[State]) -> None:
        self._subject.work += state.size >> 2
        copy = state.copy()
        copy.branches = 1
        copy.simplify(self._live[state.pc])
        state.kept_at = self.processed
        kept.append(copy)
        state.parent = copy
        self.states += 1

    def _ended(self, state: State) -> None:
        """A way is at its end: states without any that goes on are safe now."""
        for frame in state.frames:
            self._note_depth(frame)
        kept = state.parent
        while kept is not None:
            kept.branches -= 1
            if kept.branches:
                return
            kept = kept.parent

    def _note_depth(self, frame: Frame) -> None:
        self._depths[frame.entry] = max(self._depths[frame.entry], frame.depth)

    def _wait(self, state: State) -> None:
        """To be followed later."""
        if len(self._waiting) >= _MOST_WAITING:
            raise Refusal(E2BIG, f"The sequence of {len(self._waiting)} jumps is too complex.")
        self._subject.work += state.size >> 2
        if state.parent is not None:
            state.parent.branches += 1
        self._waiting.append(state)

    # ---- instructions

    def _next(self, state: State) -> State:
        state.pc += 1
        return state

    def _written(self, instruction: Instruction, register: int) -> int:
        if register == FRAME_POINTER:
            raise unsafe("frame pointer is read only")
        return register

    def _alu(self, state: State, instruction: Instruction) -> State:
        alu(self._subject, state, instruction)
        return self._next(state)

    def _load(self, state: State, instruction: Instruction) -> State:
        if instruction.mode not in (MEM, MEMSX) or instruction.imm:
            raise malformed("BPF_LDX uses reserved fields")
        source = state.regs[instruction.src]
        size = instruction.size
        value = load(self._subject, state, source, f"R{instruction.src}", instruction.offset, size)
        if instruction.mode == MEMSX:
            known = scalar.UNKNOWN if value.is_pointer else value.scalar
            value = number(scalar.sign_extended(known, size))
        elif not value.is_pointer and value.id and size < 8:
            value = number(value.scalar)
        state.regs[self._written(instruction, instruction.dst)] = value
        return self._next(state)

    def _store(self, state: State, instruction: Instruction) -> State:
        dst, name = state.regs[instruction.dst], f"R{instruction.dst}"
        if instruction.cls == ST:
            if instruction.src or instruction.mode != MEM:
                raise malformed("BPF_ST uses reserved fields")
            value = number(scalar.const(instruction.imm))
        else:
            value = state.regs[instruction.src]
            if instruction.mode == ATOMIC:
                return self._atomic(state, instruction, dst, value)
            if instruction.imm:
                raise malformed("BPF_STX uses reserved fields")
            if value.kind is Kind.NOT_INIT:
                raise unsafe(f"R{instruction.src} !read_ok")
        store(self._subject, state, dst, name, instruction.offset, instruction.size, value)
        return self._next(state)

    def _atomic(self, state: State, instruction: Instruction, dst: Reg, value: Reg) -> State:
        if instruction.imm not in ATOMIC_OPERATIONS:
            raise malformed(f"BPF_ATOMIC uses invalid atomic opcode {instruction.imm:02x}")
        if value.kind is Kind.NOT_INIT:
            raise unsafe(f"R{instruction.src} !read_ok")
        if instruction.imm == CMPXCHG and state.regs[0].kind is Kind.NOT_INIT:
            raise unsafe("R0 !read_ok")
        change(state, dst, f"R{instruction.dst}", instruction.offset, instruction.size)
        loaded = number(scalar.UNKNOWN_BY_BYTES[instruction.size])
        if instruction.imm == CMPXCHG:
            state.regs[0] = loaded
        elif instruction.imm & FETCH:
            state.regs[self._written(instruction, instruction.src)] = loaded
        return self._next(state)

    def _load_immediate(self, state: State, instruction: Instruction) -> State:
        if instruction.opcode != LOAD_IMM64:
            raise malformed("BPF_LD_[ABS|IND] reads packets, of which there are none")
        if instruction.offset:
            raise malformed("BPF_LD_IMM64 uses reserved fields")
        pc = state.pc
        if instruction.src == PSEUDO_FUNC:
            value = Reg(Kind.FUNC, size=pc + 1 + instruction.imm)
        else:
            known = self._subject.immediates.get(pc)
            upper = self._instructions[pc + 1].imm
            value = known or number(scalar.const(instruction.imm & (1 << 32) - 1 | upper << 32))
        state.regs[self._written(instruction, instruction.dst)] = value
        state.pc += 2
        return state

    def _jump(self, state: State, instruction: Instruction) -> State | None:
        operation = instruction.operation
        if operation == CALL:
            return self._call(state, instruction)
        if operation == EXIT:
            return self._exit(state, instruction)
        target = state.pc + 1 + instruction.jump_distance
        if operation == JA:
            check_goto(instruction)
            state.pc = target
            return state
        following = state.pc + 1
        falls, taken = branch(state, instruction)
        if taken is None:
            assert falls is not None, "a jump goes somewhere"
            falls.pc = following
            return falls
        taken.pc = target
        if falls is None:
            return taken
        falls.pc = following
        self._wait(taken)
        return falls

    def _call(self, state: State, instruction: Instruction) -> State:
        if instruction.is_call_of_program:
            return self._enter(state, instruction)
        call = Call(self._subject, state, instruction)
        call.check_arguments()
        if call.row.calls_back:
            self._check_frames(state)
            self._wait(call.enter_callback())
        call.finish()
        return self._next(state)

    def _enter(self, state: State, instruction: Instruction) -> State:
        if instruction.by_register or instruction.dst or instruction.offset:
            raise malformed("BPF_CALL uses reserved fields")
        self._check_frames(state)
        target = state.pc + 1 + instruction.imm
        caller = state.regs
        frame = Frame.new(target, state.pc + 1, len(state.frames))
        frame.regs[1:6] = caller[1:6]
        caller[0:6] = [NOT_INIT] * 6
        state.frames.append(frame)
        state.pc = target
        return state

    def _check_frames(self, state: State) -> None:
        if len(state.frames) >= FRAMES:
            raise Refusal(E2BIG, f"the call stack of {len(state.frames) + 1} frames is too deep")

    def _exit(self, state: State, instruction: Instruction) -> State | None:
        if instruction.by_register or instruction.imm or instruction.src or instruction.dst or instruction.offset:
            raise malformed("BPF_EXIT uses reserved fields")
        result = state.regs[0]
        if len(state.frames) > 1:
            return self._return(state, result)
        if state.refs:
            raise malformed(f"Unreleased reference id={state.refs[0]}")
        if result.kind is Kind.NOT_INIT:
            raise unsafe("R0 !read_ok")
        self._check_result(result)
        return None

    def _check_result(self, result: Reg) -> None:
        """check_return_code()"""
        traced = self._subject.traced
        if traced is None or not traced.zero:
            return
        if result.is_pointer:
            raise malformed("At program exit the register R0 is not a known value (" + result.type_name + ")")
        if result.scalar.umax:
            raise malformed(f"At program exit the register R0 has {result} should have been in [0, 0]")

    def _return(self, state: State, result: Reg) -> State:
        if result.kind is Kind.STACK:
            raise malformed("cannot return stack pointer to the caller")
        frame = state.frames.pop()
        self._note_depth(frame)
        caller = state.frames[-1]
        state.pc = frame.returns_to
        if frame.is_callback:
            if result.kind is not Kind.SCALAR or result.scalar.umax > 1:
                raise malformed(f"At callback return the register R0 has {result}, should have been in [0, 1]")
        else:
            caller.regs[0] = result
        self._forget_frame(state, frame.number)
        return state

    @staticmethod
    def _forget_frame(state: State, number_of_frame: int) -> None:
        """Nothing leads into the stack of a function that has returned."""
        for frame, where, reg, spilled in list(state.all_regs()):
            if reg.kind is Kind.STACK and reg.frame == number_of_frame:
                state.put(frame, where, number(scalar.UNKNOWN) if spilled else NOT_INIT, spilled)


def verify(subject: Subject) -> Verifier:
    """Raises Refusal. One that has verified it."""
    log = subject.log
    try:
        check_opcodes(subject.instructions)
        verifier = Verifier(subject)
        verifier.verify()
    except Refusal as refusal:
        log.line(refusal.why)
        raise
    return verifier


def _arguments(instruction: Instruction) -> int:
    row = None if instruction.is_call_of_program else ALL_HELPERS.get(instruction.imm)
    return _MOST_ARGUMENTS if row is None else len(row.args)


def _text(instruction: Instruction) -> str:
    return f"dst=r{instruction.dst} src=r{instruction.src} off={instruction.offset} imm={instruction.imm}"
