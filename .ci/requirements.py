"""Prints the distributions that pyproject.toml names, one a line, for `pip install -r`.

usage: requirements.py build|run|dev

`build` includes what the build backend asks for on this machine: cmake and ninja, where they are not installed.
"""

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def build_tools() -> list[str]:
    """What scikit-build-core wants besides itself; empty as long as it is not installed."""
    try:
        from scikit_build_core.build import get_requires_for_build_editable  # noqa: PLC0415 (may be absent)
    except ImportError:
        return []
    return list(get_requires_for_build_editable())


def extra(pyproject: dict, name: str) -> list[str]:
    """The requirements of one extra, with those of the extras that it includes."""
    own_name = pyproject["project"]["name"]
    requirements = []
    for requirement in pyproject["project"]["optional-dependencies"][name]:
        if requirement.startswith(f"{own_name}["):
            requirements += extra(pyproject, requirement[len(own_name) + 1 : -1])
        else:
            requirements.append(requirement)
    return requirements


def main() -> int:
    pyproject = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    lists = {
        "build": lambda: pyproject["build-system"]["requires"] + build_tools(),
        "run": lambda: pyproject["project"]["dependencies"],
        "dev": lambda: extra(pyproject, "dev"),
    }
    if len(sys.argv) != 2 or sys.argv[1] not in lists:
        print(__doc__, file=sys.stderr)
        return 2
    print(*lists[sys.argv[1]](), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
