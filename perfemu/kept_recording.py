"""KeptRecording: a recording that is made beside whatever else a run is for, and kept in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.events.attributes import Sampling
from perfemu.events.spec import EventSpec
from perfemu.interruption import Interruption
from perfemu.profile.profile import Profile
from perfemu.recorder import MakeExact, Recorder
from perfemu.reporting import read_profile
from perfemu.scope import Scope
from perfemu.session import Session


class KeptRecording:
    """Make it before the run; `profile` is there after it."""

    def __init__(
        self,
        session: Session,
        specs: Sequence[EventSpec],
        sampling: Sampling,
        scope: Scope,
        interruption: Interruption,
        make_exact: MakeExact | None = None,
    ) -> None:
        """As Recorder has it; `interruption`: of the run."""
        self._session = session
        made_by = ("perfemu", "record")  # so that its readers know it as ours
        self.recorder = Recorder(session, specs, sampling, scope, made_by, make_exact)
        self._stream = io.BytesIO()
        self._writer = PerfDataWriter(self._stream, self.recorder.described, self.recorder.features)
        self.recorder.write_to(lambda: self._writer, interruption)

    def profile(self, name: str, complain: Callable[[str], None], *, keeps_moments: bool = False) -> Profile:
        """What was recorded, once, under this name. `complain` hears what is wrong with the files of the guest."""
        session, writer = self._session, self._writer
        self.recorder.finish()
        self.recorder.features.jit_files = session.symbol_files(writer.pids_with_own_code, writer.mapped_files)
        writer.close()
        self._stream.seek(0)
        with PerfDataFile(self._stream, name) as file:
            return read_profile(file, session.space.sysroot or "", complain, keeps_moments=keeps_moments)
