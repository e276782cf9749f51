"""A process of its own for what may end it: what becomes of it there, and how long it took."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TypeVar

MOST_FILE_BYTES = 64 << 20  # on the host, of one file
HOST_SECONDS = 60  # beyond which it hangs; of CPU time


class Outcome(Protocol):
    """A dataclass, made without arguments. `problem` is empty where all is well."""

    problem: str
    seconds: float  # of CPU time


T = TypeVar("T", bound=Outcome)


def in_child(kind: type[T], job: Callable[[T], str]) -> T:
    """What `job` has made of its outcome, with what it says as the problem."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            status = _child(kind(), job, writing)
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as report:
        text = report.read()
    _, wait_status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(wait_status)
    outcome = kind()
    try:
        for name, value in json.loads(text).items():
            setattr(outcome, name, value)
    except ValueError:
        outcome.problem = f"the emulator ended with {code}: {text.decode(errors='replace')[-6000:]}"
    outcome.seconds = usage.ru_utime + usage.ru_stime
    return outcome


def _child(outcome: Any, job: Callable[[Any], str], writing: int) -> int:
    """Everything that is the emulator's happens here."""
    with open(writing, "wb", buffering=0) as report:
        faulthandler.enable(report)
        faulthandler.register(signal.SIGXCPU, report, chain=True)
        resource.setrlimit(resource.RLIMIT_CPU, (HOST_SECONDS, HOST_SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            observed = job(outcome)
        except BaseException:
            outcome.problem = traceback.format_exc()
        else:
            outcome.problem = observed
        report.write(json.dumps(asdict(outcome)).encode())
    return 0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """VmHWM of proc(5)'s status, which begins anew in a child."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
