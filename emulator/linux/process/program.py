"""Program: what to run, and `identify`: for which ISA an executable file is, from its header alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.linux.process.elf import HEADER, ElfError, identify_header


class ProgramError(Exception):
    """The program cannot be started. One line; `exit_status` is the shell's: 127 not found, 126 not executable."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.message = message
        self.exit_status = exit_status


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the host's user asks for it. Paths are as the guest will see them."""

    path: str
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    stdin: int = 0  # host descriptors; -1 is a closed one
    stdout: int = 1
    stderr: int = 2
    interactive: bool = False  # a read from a pipe takes what is there, instead of waiting for all that it asked for


NOT_FOUND = 127
NOT_EXECUTABLE = 126


def identify(path: str, host_path: Callable[[str], str] = str) -> str:
    """The ISA ("aarch64" or "x86_64") of an executable on the host, from its header. Raises ProgramError.

    `host_path` tells where on the host the interpreter is that a script names.
    """
    return _identify(path, host_path, 0)


def _identify(path: str, host_path: Callable[[str], str], depth: int) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(256)
    except FileNotFoundError:
        raise ProgramError(f"{path}: no such file", NOT_FOUND) from None
    except IsADirectoryError:
        raise ProgramError(f"{path}: is a directory", NOT_EXECUTABLE) from None
    except OSError as error:
        raise ProgramError(f"{path}: {(error.strerror or str(error)).lower()}", NOT_EXECUTABLE) from None
    if start.startswith(b"#!") and depth == MAX_SCRIPT_DEPTH:
        raise ProgramError(f"{path}: a script again: more than {MAX_SCRIPT_DEPTH} levels of them", NOT_EXECUTABLE)
    if start.startswith(b"#!"):
        interpreter, _ = script_interpreter(start)
        if interpreter:
            try:
                return _identify(host_path(interpreter.decode("utf-8", "surrogateescape")), host_path, depth + 1)
            except ProgramError as error:
                raise ProgramError(f"{path}: its interpreter {error.message}", error.exit_status) from None
    try:
        return identify_header(start[: HEADER.size])
    except ElfError as error:
        raise ProgramError(f"{path}: {error}", NOT_EXECUTABLE) from None


MAX_SCRIPT_DEPTH = 5  # an interpreter may be a script, so often (binfmt_script, exec_binprm)


def script_interpreter(start: bytes) -> tuple[bytes, bytes]:
    """(interpreter, its one optional argument) of a file that starts with `#!` (execve(2), "Interpreter scripts")."""
    line = start[2:256].split(b"\n", 1)[0].strip(b" \t")
    interpreter, _, argument = (
        line.partition(b" ") if b"\t" not in line else line.replace(b"\t", b" ", 1).partition(b" ")
    )
    return interpreter, argument.strip(b" \t")
