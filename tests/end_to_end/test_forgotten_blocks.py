"""A core may forget what it has decoded at any time: nobody can tell, but by the time that it takes."""

from __future__ import annotations

import pytest

from end_to_end.watching import NOTHING, Watch, observe
from guests import DIRECTORY, ISAS
from perfemu.session import Session

CORES = {"aarch64": ("ideal", "cortex-a55", "neoverse-n1"), "x86_64": ("ideal", "skylake", "zen5")}


@pytest.mark.parametrize(("isa", "core"), [(isa, core) for isa in ISAS for core in CORES[isa]])
@pytest.mark.parametrize(
    "watch", [NOTHING, Watch("sampled", sample="instructions", period=997)], ids=lambda watch: watch.name
)
def test_nothing_depends_on_how_many_blocks_are_kept(watch: Watch, isa: str, core: str) -> None:
    argv = (str(DIRECTORY / "branch_patterns" / f"{isa}.elf"),), (str(DIRECTORY / "recursion" / f"{isa}.elf"),)
    decoded = []

    def keep_few(session: Session) -> None:
        session.machine.cpus[0].core.keep_blocks(3)
        decoded.append(session.machine.cpus[0].core)

    for program in argv:
        plain = observe(program, watch, core=core)
        forgetful = observe(program, watch, core=core, before=keep_few)
        assert plain.same_as(forgetful), plain.difference(forgetful)
    assert decoded[1].decoded_blocks > 10
