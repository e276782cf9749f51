"""The command as a user meets it: one clear line for what is wrong, the shell's statuses, and nothing of Python."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import require
from end_to_end.command import ENOUGH_S, wait_for_guest
from guests import DIRECTORY, ISAS
from ideal import on_ideal
from perfcore.perfdata.reader import open_perf_data
from perfemu.cli.main import COMMANDS, main

LOOP = {isa: str(DIRECTORY / "loop_1k" / f"{isa}.elf") for isa in ISAS}
ARM = LOOP["aarch64"]
PERFEMU = [sys.executable, "-m", "perfemu"]
ROOT = DIRECTORY.parent


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    # PATH for the host's sake only; the guest has its own
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [*PERFEMU, *on_ideal(arguments)],
        capture_output=True,
        text=True,
        cwd=cwd or ROOT,
        env=variables,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("staat", 129, "'staat' is not a perfemu-command. Did you mean stat?"),
        ("frobnicate", 129, "'frobnicate' is not a perfemu-command. See 'perfemu --help'."),
        ("stat", 129, "no program to run"),
        ("stat --evnt cycles prog", 129, "unknown option '--evnt'; did you mean --event"),
        ("stat -e cycels ARM", 129, "event syntax error: unknown event 'cycels', did you mean cycles"),
        ("stat -e r999 ARM", 129, "no event with code 0x0999"),
        ("stat -r 0 ARM", 129, "-r/--repeat: 0 is not within 1.."),
        ("stat -x, -j ARM", 129, "-x and -j exclude each other"),
        ("stat --per-node ARM", 129, "stat --per-node (counts per NUMA node: there is none) is not modelled yet"),
        ("stat --append ARM", 129, "--append: wants -o FILE"),
        ("stat --log-fd 2000000 ARM", 129, "--log-fd 2000000: Bad file descriptor"),
        ("stat --counters 32 ARM", 129, "--counters 32: armv8_pmuv3_0 can have at most 31"),
        ("stat --core cray ARM", 129, "--core cray: no such core; there is "),
        ("stat --sysroot /no/root ARM", 129, "--sysroot /no/root: no such directory"),
        ("stat --rw /no/path ARM", 129, "--rw /no/path: no such file or directory"),
        ("stat --env NOT_SET_ANYWHERE ARM", 129, "--env NOT_SET_ANYWHERE: not set in your environment"),
        ("stat -o /no/where ARM", 1, "cannot write /no/where: No such file or directory"),
        ("record -o /no/where ARM", 1, "cannot write /no/where: No such file or directory"),
        ("record -o /tmp ARM", 1, "cannot write /tmp: Is a directory"),
        ("record -p 1 ARM", 1, "there was no process or thread 1: there were 1000 to 1000"),
        ("record -u 1 ARM", 129, "record -u (a user's processes) is not modelled yet"),
        ("record --call-graph lbx ARM", 129, "'lbx': there is exact, fp"),
        ("record -j any,none ARM", 129, "'none' is no branch filter; there is u, k"),
        ("record --call-graph dwarf,70000 ARM", 129, "--call-graph: 'dwarf,70000': a sample has at most 65528 bytes"),
        ("record --user-regs=ip ARM", 129, "record: aarch64 has no register 'ip' in its samples; there are x0,x1"),
        ("record --switch-output=x ARM", 129, "--switch-output: 'x' is no size (10M), no simulated time (1s, 20ms)"),
        ("record --switch-output=1s -o - ARM", 129, "record --switch-output: a pipe is one file"),
        ("record --switch-max-files 2 ARM", 129, "record --switch-max-files: wants --switch-output"),
        (
            "record --switch-output=1s --switch-max-files 1001 ARM",
            129,
            "record --switch-max-files 1001: at most 1000: each is open until the run's end",
        ),
        ("record --exact -D 1 ARM", 129, "record: --exact is of a whole run"),
        ("record -m 0 ARM", 129, "-m/--mmap-pages: 0: buffers have 1 to 262144 pages of 4 KiB"),
        ("record --exclude-perf ARM", 129, "record --exclude-perf: there is no perf in the guest"),
        ("record --filter x ARM", 129, "--filter 'x': stands behind the -e of a tracepoint"),
        ("stat -e cycles --filter x==1 ARM", 129, "--filter 'x==1': cycles:u is no tracepoint"),
        ("stat -e sched:sched_switch --filter x==1 ARM", 1, "--filter 'x==1' of sched:sched_switch: filter 'x==1'"),
        ("record -c ten ARM", 129, "-c/--count: 'ten' is not a number"),
        ("stat --per- 1 ARM", 129, "ambiguous option: --per- could match --per-socket, --per-die, --per-core"),
        ("stat -n -e cycles ARM", 129, "-n and -e exclude each other"),
        ("evlist", 129, "there is no command 'evlist' yet; perf evlist reads our files"),
        ("report my.data", 129, "'my.data': a file is named with -i"),
        ("report -g flat", 129, "report -g flat: known are graph, fractal, folded, none, PERCENT"),
        ("report --percent-limit ten", 129, "--percent-limit: 'ten' is not a percentage"),
        ("report -p main", 129, "report -p (filters by caller) is not modelled yet"),
        ("record -c 10 -F 10 ARM", 129, "-c and -F exclude each other"),
        ("record -e branch-misses ARM", 1, "the branch-misses:u event is not supported"),
        (
            "record -e cycles:k ARM",
            1,
            "the cycles:k event is not supported: armv8_pmuv3_0: nobody here knows CPU_CYCLES of the kernel alone",
        ),
        ("run no-such-program", 127, "no-such-program: not found in /usr/local/bin:/usr/bin:/bin"),
        ("run ./no/such/program", 127, "./no/such/program: no such file"),
        ("run /tmp", 126, "/tmp: is a directory"),
        ("run README.md", 127, "README.md: not found"),
        ("list no-such-event", 1, "list: no event matches no-such-event"),
    ],
)
def test_a_wrong_command_gets_one_line(
    command: str, status: int, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(on_ideal([ARM if word == "ARM" else word for word in command.split()])) == status
    output = capsys.readouterr()
    assert output.err.startswith("perfemu: ")
    assert message in output.err
    assert output.err.count("\n") == 1


def test_files_that_are_no_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = Path(ARM).read_bytes()
    cases = {
        "text": (b"hello", "not an ELF executable"),
        "truncated": (loop[:40], "a truncated ELF file"),
        "short": (loop[:100], "truncated"),
        "32-bit": (loop[:4] + b"\x01" + loop[5:], "a 32-bit ELF file"),
        "riscv": (loop[:18] + b"\xf3\x00" + loop[20:], "an ELF file for RISC-V"),
        "object": (loop[:16] + b"\x01\x00" + loop[18:], "a relocatable object"),
    }
    for name, (data, message) in cases.items():
        path = tmp_path / name
        path.write_bytes(data)
        path.chmod(0o755)
        assert main(["stat", "--core", "ideal", str(path)]) == 126, name
        error = capsys.readouterr().err
        assert message in error, name
        assert error.count("\n") == 1, error
        assert main(["record", "--core", "ideal", "-o", str(tmp_path / "out.data"), str(path)]) == 126
        assert not (tmp_path / "out.data").exists()
        capsys.readouterr()


def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as left:
            main([command.name, "--help"])
        assert left.value.code == 0
        text = capsys.readouterr().out
        assert command.summary in text
        if command.name != "report":
            assert f"  perfemu {command.name}" in text
    assert main(["--help"]) == 0
    table = capsys.readouterr().out
    assert all(f"   {command.name:<15} {command.summary}\n" in table for command in COMMANDS)


def test_an_internal_error_is_one_line_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("by a test")

    monkeypatch.setattr("perfemu.session.LinuxMachine", broken)
    assert main(["run", "--core", "ideal", ARM]) == 1
    error = capsys.readouterr().err
    assert error.startswith("perfemu: internal error, a bug in perfemu: ZeroDivisionError: by a test (")
    assert error.count("\n") == 1
    monkeypatch.setenv("PERFEMU_DEBUG", "1")
    main(["run", "--core", "ideal", ARM])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("isa", ISAS)
def test_stat_counts_and_leaves_the_guests_output_alone(isa: str) -> None:
    # guest_programs/loop_1k/expected.toml derives 2004 instructions and 1000 branches, on x86 1001 with SYSCALL
    done = run("stat", "-x,", "-e", "instructions,branches,branch-misses,page-faults", LOOP[isa])
    branches = {"aarch64": 1000, "x86_64": 1001}[isa]
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[:3] == [
        "2004,,instructions:u,2004,100.00,,",
        f"{branches},,branches:u,2004,100.00,,",
        "<not supported>,,branch-misses:u,0,100.00,,",
    ]


def test_default_events_are_perfs() -> None:
    lines = run("stat", ARM).stderr.splitlines()
    names = [line.split("#")[0].split()[-1] for line in lines[3:11]]
    assert names == [
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "page-faults",
        "cycles:u",
        "instructions:u",
        "branches:u",
        "branch-misses:u",
    ]
    assert lines[1] == f" Performance counter stats for '{ARM}' (core ideal):"


def test_the_default_core_is_the_isas_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Models of real machines, with caches and mispredictions; the program's own counts are the ideal core's."""
    for isa, core in (("aarch64", "neoverse-n1"), ("x86_64", "zen5")):
        program = str(DIRECTORY / "recursion" / f"{isa}.elf")
        assert main(["stat", "-e", "instructions,branch-misses,cache-misses", program]) == 0
        printed = capsys.readouterr().err
        assert f"(core {core}):" in printed
        assert "<not supported>" not in printed
        assert main(["stat", "--core", "ideal", "-e", "instructions", program]) == 0
        (counted,) = (line for line in capsys.readouterr().err.splitlines() if "instructions:u" in line)
        assert counted.split()[0] in printed


def test_an_inherited_environment_is_the_users_and_has_nothing_of_pythons() -> None:
    """In the C locale Python sets LC_CTYPE for itself; `env` of busybox prints what it was given."""
    busybox = require.command("busybox", package="busybox-static")
    done = run("run", "--inherit-env", busybox, "env", ONE="1")
    names = [line.partition("=")[0] for line in done.stdout.splitlines()]
    assert sorted(names) == ["ONE", "PATH", "PYTHONPATH"]
    assert "LC_CTYPE=C.UTF-8" in run("run", "--inherit-env", busybox, "env", LC_CTYPE="C.UTF-8").stdout.splitlines()


def test_what_does_not_fit_the_counters_is_not_counted() -> None:
    """With one event counter: cycles has a counter of its own, br_retired the one, ld_retired none."""
    done = run("stat", "--counters", "1", "-x,", "-e", "cycles,br_retired,ld_retired", ARM)
    assert done.stderr.splitlines() == [
        "2004,,cycles:u,2004,100.00,,",
        "1000,,br_retired:u,2004,100.00,,",
        "<not counted>,,ld_retired:u,0,0.00,,",
    ]


def test_what_does_not_fit_lets_nobody_past_as_on_linux() -> None:
    """cycles would have a counter of its own, but is behind one that waits for its turn, and 2 us are too short."""
    done = run("stat", "--counters", "1", "-x,", "-e", "br_retired,ld_retired,cycles,st_retired", ARM)
    assert [line.split(",")[0] for line in done.stderr.splitlines()] == ["1000", *["<not counted>"] * 3]


def test_events_that_share_a_counter_are_scaled() -> None:
    """13.6 ms in turns of 4 ms: 0 to 4 and 8 to 12 ms, and the rest. Each says how much of the time it has seen."""
    program = "guest_programs/compression/aarch64.elf"
    done = run("stat", "--counters", "1", "-x,", "-e", "br_retired,ld_retired", program)
    rows = [line.split(",") for line in done.stderr.splitlines()]
    assert [int(row[3]) for row in rows] == [8_000_000, 13_632_734 - 8_000_000]
    assert [float(row[4]) for row in rows] == [58.68, 41.32]
    exact = run("stat", "-x,", "-e", "br_retired,ld_retired", program).stderr.splitlines()
    for row, line in zip(rows, exact, strict=True):
        assert int(row[0]) == pytest.approx(int(line.split(",")[0]), rel=0.2)  # phases differ


def test_what_does_not_fit_a_group_is_not_counted() -> None:
    done = run("stat", "--counters", "1", "-x,", "-e", "{br_retired,ld_retired,cycles}", ARM)
    assert (done.returncode, [line.split(",")[0] for line in done.stderr.splitlines()]) == (
        0,
        ["1000", "<not counted>", "2004"],
    )


def test_an_event_without_a_counter_is_named_not_forgotten(tmp_path: Path) -> None:
    done = run("record", "--counters", "1", "-c", "100", "-e", "br_retired,ld_retired", ARM, cwd=tmp_path)
    assert "perfemu: record: ld_retired:u found no counter, and has no samples (--counters)\n" in done.stderr
    assert "(10 samples)" in done.stderr  # 1000 branches


def test_output_goes_where_it_is_told(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    for option in ("-o", "-o"):
        assert run("stat", "-x,", "-e", "instructions", option, str(counts), ARM).stderr == ""
    run("stat", "-x,", "-e", "instructions", "-o", str(counts), "--append", ARM)
    assert counts.read_text() == "2004,,instructions:u,2004,100.00,,\n" * 2
    assert run("stat", "-j", "-e", "instructions", "--log-fd", "1", ARM).stdout.startswith('{"counter-value" : "2004.')


@pytest.mark.parametrize("command", ["stat -o counts", "record -o perf.data", "run"])
def test_a_programs_status_is_ours(command: str, tmp_path: Path) -> None:
    busybox = require.command("busybox", package="busybox-static")
    assert run(*command.split(), busybox, "sh", "-c", "exit 7", cwd=tmp_path).returncode == 7


def test_an_old_file_is_kept(tmp_path: Path) -> None:
    for count in ("100", "200"):
        done = run("record", "-c", count, ARM, cwd=tmp_path)
        assert done.returncode == 0
    # 2004 instructions on a core of one cycle each: 20 samples, then 10
    assert "[ perfemu record: Captured and wrote 0.0" in done.stderr
    assert "perf.data (10 samples) ]" in done.stderr
    for name, samples in (("perf.data.old", 20), ("perf.data", 10)):
        with open_perf_data(str(tmp_path / name)) as file:
            assert sum(record.type == 9 for record in file.records()) == samples


def test_recordings_are_identical_whatever_the_host(tmp_path: Path) -> None:
    for name, home in (("one", "/"), ("two", "/home/user")):
        (tmp_path / name).mkdir()
        run("record", "-c", "10", "-g", ARM, cwd=tmp_path / name, HOME=home, LANG="C.UTF-8" if home else "C")
    assert (tmp_path / "one" / "perf.data").read_bytes() == (tmp_path / "two" / "perf.data").read_bytes()


def spin(directory: Path) -> Path:
    """A program that never ends: b . (AArch64), over the first instruction of loop_1k."""
    program = bytearray(Path(ARM).read_bytes())
    first_instruction = program.index(bytes.fromhex("007d80d2"))  # mov x0, #1000
    program[first_instruction : first_instruction + 4] = bytes.fromhex("00000014")
    path = directory / "spin"
    path.write_bytes(program)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("record -c 1000000 -o out.data", signal.SIGINT),
        ("record -c 1000000 -o out.data", signal.SIGTERM),
        ("stat -e instructions", signal.SIGINT),
        ("run", signal.SIGTERM),
    ],
)
def test_a_signal_ends_the_run_in_order(command: str, number: signal.Signals, tmp_path: Path) -> None:
    program = spin(tmp_path)
    process = subprocess.Popen(
        [*PERFEMU, *on_ideal(command.split()), str(program)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wait_for_guest(process)
    process.send_signal(number)
    before = time.monotonic()
    try:
        _, error = process.communicate(timeout=10)
    finally:
        process.kill()  # if it would go on for ever
    assert process.returncode == -number
    assert time.monotonic() - before < ENOUGH_S
    if command.startswith("record"):
        assert "[ perfemu record: Captured and wrote" in error
        with open_perf_data(str(tmp_path / "out.data")) as file:
            assert not file.interrupted
            assert sum(record.type == 9 for record in file.records()) > 0
    if command.startswith("stat"):
        assert "instructions:u" in error
    assert "Traceback" not in error


def test_perfs_abbreviations_and_habits(tmp_path: Path) -> None:
    counted = run("stat", "--rep=2", "--out", str(tmp_path / "counts"), "-einstructions", "-x,", "--", ARM)
    assert (counted.returncode, counted.stderr) == (0, "")
    assert (tmp_path / "counts").read_text().startswith("2004,,instructions:u,0.00%,")
    detailed = run("stat", "-d", "-x,", LOOP["x86_64"]).stderr.splitlines()
    assert [line.split(",")[2] for line in detailed][8:] == [
        "L1-dcache-loads:u", "L1-dcache-load-misses:u", "LLC-loads:u", "LLC-load-misses:u",
    ]  # fmt: skip
    nothing = run("stat", "--null", ARM).stderr.splitlines()
    assert nothing[2:4] == ["", "       0.000002004 seconds time elapsed"]


def test_the_highest_frequency_is_the_emulated_kernels(tmp_path: Path) -> None:
    sorting = str(DIRECTORY / "sort" / "x86_64.elf")
    recorded = run("record", "-F", "max", "-o", str(tmp_path / "perf.data"), sorting, "1000")
    assert recorded.stderr.startswith("info: Using a maximum frequency rate of 100,000 Hz\n")
    with open_perf_data(str(tmp_path / "perf.data")) as file:
        assert file.events[0].attr.sample_period == 100_000
        assert file.events[0].attr.freq == 1


def test_report_reads_a_pipe_that_is_there_and_lists_its_records(tmp_path: Path) -> None:
    """As perf: a pipe on standard input is the input. 2,004 instructions, so 4 samples of 500."""
    stream = subprocess.run(
        [*PERFEMU, "record", "--core", "ideal", "-q", "-e", "instructions", "-c", "500", "-o", "-", ARM],
        capture_output=True,
        check=True,
    ).stdout
    for option, wanted in (
        ("-q", b"   100.00%  aarch64.elf  aarch64.elf    [.] _start"),
        ("-D", b"PERF_RECORD_SAMPLE"),
    ):
        read = subprocess.run([*PERFEMU, "report", option], input=stream, capture_output=True, check=True, cwd=tmp_path)
        lines = [line for line in read.stdout.splitlines() if wanted in line]
        assert len(lines) == (1 if option == "-q" else 4)
    assert b"instructions:u ip=0x" in lines[0]
