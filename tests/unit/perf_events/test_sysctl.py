"""What a guest may set of perf_event, and what it may not."""

from __future__ import annotations

import pytest

import perfemu
import require
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.events.settings import Settings
from perfcore.events.sysctl import mux_interval_files, sysctl_files
from unit.perf_events.fake_machine import FakeMachine

KERNEL = "/proc/sys/kernel"


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("perf_event_paranoid", [b"2\n", b"-1"], [b"", b"x", b"99999999999"]),
        ("perf_event_max_sample_rate", [b"1"], [b"0"]),
        ("perf_event_max_stack", [b"0", b"655360"], [b"655361", b"-1"]),
        ("perf_cpu_time_max_percent", [b"100"], [b"101"]),
        ("perf_user_access", [b"0"], [b"2"]),
    ],
)
def test_a_sysctl_is_what_was_written_last(name: str, taken: list[bytes], refused: list[bytes]) -> None:
    files = {path: (text, store) for path, text, store in sysctl_files("aarch64", Settings())}
    text, store = files[f"{KERNEL}/{name}"]
    assert store is not None
    for data in taken:
        store(data)
        assert int(text()) == int(data)
    before = text()
    for data in refused:
        with pytest.raises(LinuxError) as error:
            store(data)
        assert error.value.code == EINVAL
    assert text() == before


def test_the_interval_of_turns_is_the_pmus() -> None:
    machine = FakeMachine()
    ((path, text, store),) = mux_interval_files(machine.drivers)
    assert path == "/sys/bus/event_source/devices/armv8_pmuv3_0/perf_event_mux_interval_ms"
    assert text() == "4\n"
    assert store is not None
    store(b"1\n")
    assert (text(), machine.drivers[0].mux_interval_ns) == ("1\n", 1_000_000)
    with pytest.raises(LinuxError):
        store(b"0")


def test_a_guest_writes_them_by_its_shell() -> None:
    file = f"{KERNEL}/perf_event_paranoid"
    shell = [require.command("busybox", package="busybox-static"), "sh", "-c"]
    done = perfemu.run(perfemu.Guest([*shell, f"cat {file}; echo 2 > {file}; cat {file}"], core="ideal"), capture=True)
    assert done.stdout == b"-1\n2\n"
