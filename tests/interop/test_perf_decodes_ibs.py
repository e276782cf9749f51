"""The unmodified perf 6.12 decodes IBS's registers, and what samples say of data, as we wrote them."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import build
from guests import guest
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from pmu.amd.ibs import CAPABILITIES
from pmu.amd.ibs_registers import IBS_FETCH_CTL, IBS_OP_DATA3
from real_perf import RealPerf, trixies_perf

SHARING = Path(__file__).with_name("false_sharing.c")


@pytest.fixture
def perf(tmp_path: Path) -> RealPerf:
    return RealPerf(tmp_path, trixies_perf("x86_64"))


def record(path: Path, *options: str, program: Path | None = None) -> Path:
    program = program or guest("embedded_mix", "x86_64").path
    words = ["record", "-q", "--core", "zen5", *options, "-o", str(path), "--", str(program), "5"]
    command = [sys.executable, "-m", "perfemu", *words]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return path


def raw_registers(path: Path) -> list[tuple[int, ...]]:
    """Of each sample: its registers, behind the capabilities."""
    with open_perf_data(str(path)) as file:
        found = [file.decode_sample(each, 0).raw for each in file.records() if each.type == RecordType.SAMPLE]
    for raw in found:
        assert struct.unpack_from("<I", raw) == (CAPABILITIES,)
    return [struct.unpack_from(f"<{len(raw) // 8}Q", raw, 4) for raw in found]


def decoded(text: str, name: str) -> list[int]:
    """What perf prints behind the name of a register."""
    return [int(value, 16) for value in re.findall(rf"^{name}:\s*([0-9a-f]+)", text, re.MULTILINE)]


def test_op_registers(perf: RealPerf, tmp_path: Path) -> None:
    path = record(tmp_path / "perf.data", "-e", "ibs_op/cnt_ctl=1/u", "-c", "1008", "-R", "-d", "-W", "--phys-data")
    text = perf.run("report", "-D", "-i", path)
    registers = raw_registers(path)
    assert len(registers) > 150  # of some 200,000 ops
    names = ("ibs_op_ctl", "IbsOpRip", "ibs_op_data", "ibs_op_data2", "ibs_op_data3")
    assert [*zip(*(decoded(text, name) for name in names), strict=True)] == [each[:5] for each in registers]
    with_address = [each for each in registers if IBS_OP_DATA3(each[4]).IbsDcLinAddrValid]
    assert with_address
    assert decoded(text, "IbsDCLinAd") == [each[5] for each in with_address]
    assert decoded(text, "IbsDCPhysAd") == [each[6] for each in with_address]
    # addresses and kinds of access once more, as the sample's own fields
    lines = perf.run("script", "-F", "ip,addr,phys_addr,data_src", "-i", path).splitlines()
    for line, each in zip(lines, registers, strict=True):
        addr, data_src, ip, physical = line.split()[0], line, *line.split()[-2:]
        data3 = IBS_OP_DATA3(each[4])
        assert int(addr, 16) == each[5]
        assert int(ip, 16) == each[1]
        assert int(physical, 16) == each[6]
        assert ("OP LOAD" in data_src, "OP STORE" in data_src) == (
            bool(data3.IbsLdOp), bool(data3.IbsStOp and not data3.IbsLdOp),
        )  # fmt: skip
        if data3.IbsLdOp or data3.IbsStOp:
            assert ("L1 hit" in data_src.replace("TLB L1 hit", "")) == (not data3.IbsDcMiss)


def test_fetch_registers(perf: RealPerf, tmp_path: Path) -> None:
    path = record(tmp_path / "perf.data", "-e", "ibs_fetch/rand_en=1/u", "-c", "256", "-R")
    text = perf.run("report", "-D", "-i", path)
    registers = raw_registers(path)
    assert registers
    names = ("ibs_fetch_ctl", "IbsFetchLinAd", "IbsFetchPhysAd")
    assert [*zip(*(decoded(text, name) for name in names), strict=True)] == [each[:3] for each in registers]
    assert all(IBS_FETCH_CTL(each[0]).IbsFetchComp for each in registers)


def test_precise_cycles_are_ibs_ops(perf: RealPerf, tmp_path: Path) -> None:
    """Where they ask for what no counter knows: addresses."""
    path = record(tmp_path / "perf.data", "-e", "cycles:ppu", "-c", "1008", "-d")
    addresses = [int(line.split()[0], 16) for line in perf.run("script", "-F", "addr,ip", "-i", path).splitlines()]
    assert any(addresses)


def test_false_sharing(perf: RealPerf, tmp_path: Path) -> None:
    """perf c2c finds the line that two threads write and read, and both functions that do."""
    program = build(SHARING, "x86_64", tmp_path / "sharing", "-g")
    path = record(
        tmp_path / "perf.data", "-e", "ibs_op/cnt_ctl=1/u", "-c", "512", "-d", "-W", "--phys-data", "--sample-cpu",
        "--cpus", "2", program=program,
    )  # fmt: skip
    text = perf.run("c2c", "report", "--stdio", "-i", path)
    lines = text[text.index("Shared Data Cache Line Table") :]
    assert "adds_to_first" in lines
    assert "adds_to_second" in lines
