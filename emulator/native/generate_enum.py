"""Write a C++ enum from a Python one: generate_enum.py probes.py Probe probes.hpp."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path


def main() -> None:
    source, name, target = sys.argv[1:]
    members = runpy.run_path(source)[name]
    rows = "".join(f"    {member.name} = {member.value},\n" for member in members)
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    names = "".join(f'    "{member.name}",\n' for member in members)
    Path(target).write_text(
        f"// Generated from emulator/{Path(source).name}.\n"
        "#pragma once\n\n"
        "#include <cstdint>\n\n"
        "namespace perfemu {\n\n"
        f"enum class {name} : uint8_t {{\n{rows}}};\n\n"
        f"static constexpr unsigned {prefix}_COUNT = {len(members)};\n\n"
        f"inline constexpr const char* {prefix}_NAMES[] = {{\n{names}}};\n\n"
        "}  // namespace perfemu\n"
    )


if __name__ == "__main__":
    main()
