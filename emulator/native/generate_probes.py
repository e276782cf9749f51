"""Write the C++ enum of the probes: generate_probes.py probes.py probes.hpp."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    source, target = sys.argv[1:]
    probes = runpy.run_path(source)["Probe"]
    rows = "".join(f"    {probe.name} = {probe.value},\n" for probe in probes)
    Path(target).write_text(
        "// Generated from emulator/probes.py.\n"
        "#pragma once\n\n"
        "#include <cstdint>\n\n"
        "namespace perfemu {\n\n"
        f"enum class Probe : uint8_t {{\n{rows}}};\n\n"
        f"static constexpr unsigned PROBE_COUNT = {len(probes)};\n\n"
        "}  // namespace perfemu\n"
    )


if __name__ == "__main__":
    main()
