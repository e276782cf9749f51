"""The Python API, and that its documentation is true."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

import perfemu
import require
from emulator.linux.mm.vdso import vdso_image
from guests import DIRECTORY, ISAS
from perfcore.perfdata.reader import open_perf_data
from perfemu import api
from perfemu.symbols.finder import build_id_of

ROOT = DIRECTORY.parent
LOOP = {isa: DIRECTORY / "loop_1k" / f"{isa}.elf" for isa in ISAS}


def test_the_documentations_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace; from a directory that looks like the project's."""
    (tmp_path / "guest_programs").symlink_to(DIRECTORY)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)
    assert len(examples) >= 4
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/api.md", "exec"), names)


def test_stub_and_module_offer_the_same() -> None:
    stub = (ROOT / "perfemu" / "__init__.pyi").read_text()
    assert re.findall(r"import (\w+) as \1", stub) == api.__all__
    assert perfemu.stat is api.stat
    with pytest.raises(AttributeError, match="no attribute 'statt'"):
        perfemu.statt  # noqa: B018


@pytest.mark.parametrize("isa", ISAS)
def test_identical_runs_do_not_deviate(isa: str) -> None:
    result = perfemu.stat(perfemu.Guest([LOOP[isa]], core="ideal"), ["instructions", "{cycles,branches}"], repeat=3)
    assert result["instructions"] == result["cycles:u"] == 2004
    assert [count.spread.deviation for count in result.counts] == [0, 0, 0]
    assert result.elapsed_ns == 2004  # one cycle an instruction, at 1 GHz


def test_what_was_not_counted_says_why() -> None:
    result = perfemu.stat(perfemu.Guest([LOOP["aarch64"]], core="ideal"), ["branch-misses", "cycles:k"])
    for name in ("branch-misses", "cycles"):
        assert name not in result
        with pytest.raises(KeyError, match="not supported"):
            result[name]
    with pytest.raises(KeyError, match="faults: not among the events branch-misses:u, cycles:k"):
        result["faults"]


def test_signal_handlers_are_the_callers_again(tmp_path: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    perfemu.stat(perfemu.Guest([LOOP["x86_64"]], core="ideal"), ["instructions"])
    assert [signal.getsignal(number) for number in numbers] == before
    perfemu.record(perfemu.Guest([LOOP["x86_64"]], core="ideal"), output=tmp_path / "data")
    assert [signal.getsignal(number) for number in numbers] == before


def test_errors_are_exceptions_with_one_line() -> None:
    with pytest.raises(perfemu.EventSyntaxError, match="did you mean cycles"):
        perfemu.stat(perfemu.Guest([LOOP["aarch64"]], core="ideal"), ["cycels"])
    with pytest.raises(perfemu.PerfemuError, match="no such file"):
        perfemu.run(perfemu.Guest(["./no-such-program"], core="ideal"))
    with pytest.raises(ValueError, match="a sequence of the program and its arguments"):
        perfemu.run("prog")


def test_input_output_environment_and_directory(tmp_path: Path) -> None:
    busybox = require.command("busybox", package="busybox-static")
    result = perfemu.run(perfemu.Guest([busybox, "cat"], core="ideal"), input=b"to be read", capture=True)
    assert (result.stdout, result.stderr) == (b"to be read", b"")
    result = perfemu.run(
        perfemu.Guest(
            [busybox, "sh", "-c", "echo $NAME; pwd; echo oops >&2; exit 3"],
            core="ideal",
            environment={"NAME": "value"},
            cwd=tmp_path,
        ),
        capture=True,
    )
    assert result.stdout == f"value\n{tmp_path}\n".encode()
    assert (result.stderr, result.exit_status) == (b"oops\n", 3)
    counted = perfemu.stat(
        perfemu.Guest([busybox, "wc", "-c"], core="ideal"), ["instructions"], input=b"12345", capture=True, repeat=2
    )
    assert counted.stdout == b"5\n5\n"  # both runs read it
    assert counted.counts.events[0].spread.deviation == 0
    recording = perfemu.record(
        perfemu.Guest([busybox, "true"], core="ideal"), output=tmp_path / "out.data", period=1000, capture=True
    )
    samples = list(recording.samples())
    assert recording.sample_count == len(samples) > 0
    assert {sample.period for _, sample in samples} == {1000}
    assert os.path.getsize(recording.path) > 0


def test_program_finds_the_cpus_it_was_given(tmp_path: Path) -> None:
    require.command("nproc", "coreutils")
    result = perfemu.run(perfemu.Guest(["/usr/bin/nproc"], cpus=3, quantum=100, seed=5, core="ideal"), capture=True)
    assert result.stdout == b"3\n"
    counted = perfemu.stat(perfemu.Guest(["/usr/bin/nproc"], cpus=2, core="ideal"), ["instructions"], capture=True)
    assert counted.stdout == b"2\n"
    recording = perfemu.record(
        perfemu.Guest(["/usr/bin/nproc"], cpus=4, core="ideal"), period=10_000, output=tmp_path / "data", capture=True
    )
    assert recording.stdout == b"4\n"
    assert {sample.cpu for _, sample in recording.samples()} == {0}


def test_profiles_of_cpus(tmp_path: Path) -> None:
    def recorded(**scope: object) -> list[int]:
        recording = perfemu.record(
            perfemu.Guest([LOOP["x86_64"]], core="ideal", cpus=2),
            ["instructions"],
            period=500,
            output=tmp_path / "data",
            **scope,
        )  # type: ignore[arg-type]
        return [sample.cpu for _, sample in recording.samples()]

    assert recorded(all_cpus=True) == recorded(cpu_list="0") == [0] * 4  # floor(2004 / 500)
    assert recorded(cpu_list="1") == []
    with pytest.raises(perfemu.UsageError, match="there is no CPU 2"):
        recorded(cpu_list="2")


def test_a_guest_sees_what_is_bound(tmp_path: Path) -> None:
    busybox = require.command("busybox", package="busybox-static")
    shutil.copy(busybox, tmp_path / "busybox")
    script = "pwd; echo x > made; echo *; cat /etc/passwd || echo none"
    seen = {"binds": [f"{tmp_path}:/mine:rw"], "isolate": True, "core": "ideal"}
    result = perfemu.run(perfemu.Guest(["./busybox", "sh", "-c", script], cwd=tmp_path, **seen), capture=True)
    assert result.stdout == b"/mine\nbusybox made\nnone\n"
    assert (tmp_path / "made").read_text() == "x\n"
    assert perfemu.run(perfemu.Guest(["/mine/busybox", "pwd"], cwd="/usr", **seen), capture=True).stdout == b"/\n"
    program = perfemu.Guest(["/mine/busybox", "true"], **seen)
    counted = perfemu.stat(program, ["instructions"])
    recording = perfemu.record(program, ["instructions"], period=1000, output=tmp_path / "data")
    assert recording.sample_count == counted["instructions"] // 1000
    with open_perf_data(recording.path) as file:
        files = {("/mine/busybox", busybox), ("[vdso]", str(vdso_image("x86_64")))}
        found = {(id.path, id.build_id) for id in file.features.build_ids}
        assert found == {(name, build_id_of(path)) for name, path in files}


@pytest.mark.parametrize(
    ("wrong", "error", "right"),
    [
        ({"binds": ["/nowhere:/x"]}, perfemu.UsageError, "--bind /nowhere:/x: /nowhere: no such file"),
        ({"binds": ["/usr:/"], "writable_paths": ["/usr"]}, perfemu.UsageError, "--rw /usr: only what is bound"),
        ({"isolate": True, "sysroot": "/usr"}, perfemu.UsageError, "--sysroot /usr: only what is bound"),
        ({"isolate": True}, perfemu.PerfemuError, "no such file"),
        ({"binds": "/usr:/"}, ValueError, "a sequence of them"),
    ],
)
def test_what_cannot_be_bound_is_named(wrong: dict[str, object], error: type[Exception], right: str) -> None:
    for command in (perfemu.run, perfemu.stat, perfemu.record):
        with pytest.raises(error, match=right):
            command(perfemu.Guest([LOOP["x86_64"]], **wrong))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"cpus": 0}, "1..64"),
        ({"cpus": 65}, "cpus=65: 65 is not within 1..64"),
        ({"quantum": 0}, "quantum=0: 0 is not within 1.."),
    ],
)
def test_machine_that_cannot_be_is_refused(wrong: dict[str, int], right: str) -> None:
    with pytest.raises(ValueError, match=right):
        perfemu.Guest([LOOP["x86_64"]], **wrong)  # type: ignore[arg-type]


def test_a_result_is_short_where_pytest_prints_it() -> None:
    program = LOOP["x86_64"]
    result = perfemu.stat(perfemu.Guest([program], core="ideal"), ["instructions", "branch-misses"])
    assert repr(result) == (
        f"<{program} (core ideal): instructions:u 2,004, branch-misses:u <not supported>; status 0>"
    )
    assert len(repr(result.counts)) < 200


def test_limits_end_a_run(tmp_path: Path) -> None:
    """loop_1k takes 2,004 instructions; on the ideal core each is a nanosecond."""
    argv = [LOOP["aarch64"]]
    assert perfemu.run(perfemu.Guest(argv, core="ideal", max_instructions=1000)).instructions == 1000
    assert perfemu.run(perfemu.Guest(argv, core="ideal", timeout=0.000_001)).instructions == 1000
    assert perfemu.stat(perfemu.Guest(argv, core="ideal", timeout="0.001ms"), ["instructions"])["instructions"] == 1000
    recorded = perfemu.record(
        perfemu.Guest(argv, core="ideal", max_instructions=1000), period=100, output=tmp_path / "data"
    )
    assert (recorded.sample_count, recorded.exit_status) == (10, 124)
    whole = perfemu.run(perfemu.Guest(argv, core="ideal", memory="64M", max_output=1 << 20, max_tasks=1, timeout=5))
    assert (whole.instructions, whole.exit_status) == (2004, 0)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"timeout": "1m"}, "timeout='1m': '1m' is not a time: 2s, 1.5ms"),
        ({"memory": 1}, "memory=1: 1 is not within 16M..64G"),
        ({"max_tasks": 0}, "max_tasks=0: 0 is not within 1.."),
        ({"user": "root"}, "user='root': 'root' is no user: UID or UID:GID, in numbers"),
        ({"max_time": 1}, "unexpected keyword argument 'max_time'"),
    ],
)
def test_what_is_no_limit_is_named(limits: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        perfemu.Guest(["/bin/true"], **limits)  # type: ignore[arg-type]


def test_a_user_is_who_the_program_is() -> None:
    result = perfemu.run(perfemu.Guest(["/usr/bin/id"], core="ideal", user="1000:100"), capture=True)
    assert result.stdout is not None
    assert result.stdout.startswith(b"uid=1000")
    assert b"gid=100(users)" in result.stdout


def test_untimed_is_the_cores_identity_at_a_cycle_an_instruction() -> None:
    result = perfemu.stat(perfemu.Guest([LOOP["x86_64"]], core="skylake", untimed=True), ["cycles", "instructions"])
    assert (result["cycles"], result["instructions"]) == (2004, 2004)
