"""Write a C++ enum from a Python one: generate_enum.py probes.py Probe probes.hpp.

Of members that have a source, C++ also gets each source's range.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path


def ranges(members: Iterable[IntEnum], name: str, prefix: str) -> str:
    counts = Counter(source.name for member in members if (source := getattr(member, "source", None)))
    if not counts:
        return ""
    first = 0
    lines = f"\nstruct {name}Range {{\n    unsigned first, count;\n}};\n"
    for source, count in counts.items():
        lines += f"static constexpr {name}Range {source}_{prefix}S{{{first}, {count}}};\n"
        first += count
    return lines


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
        f"static constexpr unsigned {prefix}_COUNT = {len(members)};\n"
        f"{ranges(members, name, prefix)}\n"
        f"inline constexpr const char* {prefix}_NAMES[] = {{\n{names}}};\n\n"
        "}  // namespace perfemu\n"
    )


if __name__ == "__main__":
    main()
