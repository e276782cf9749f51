"""Builds the guest programs: <name>/aarch64.elf and x86_64.elf from <name>/{aarch64,x86_64}.S or main.c, and those for
the bare metal of a board: <name>/BOARD.elf from <name>/BOARD.S.

Besides them the machine's vDSO: emulator/linux/arch/vdso/ISA.elf from vdso/ISA.S, ISA.map and vdso.lds.

usage: build.py [--write] [--output DIRECTORY] [NAME...]

Compares what it built with SHA256SUMS and says what differs (other compilers give other code). --write replaces the
checked-in programs and their hashes; --output only puts the programs somewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUMS = HERE / "SHA256SUMS"
COMPILERS = {
    "aarch64": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", ["-march=armv8-a", "-mno-outline-atomics"]),
    "x86_64": ("x86_64-linux-gnu-gcc", "gcc", ["-march=x86-64", "-fcf-protection=none", "-mno-red-zone"]),
}
# Boards: whose instructions they execute, and where their images are loaded.
BOARDS = {
    "virt": ("aarch64", ["-Wl,-Ttext=0x40080000", "-Wl,-n"]),
    "pc": ("x86_64", ["-Wl,-Ttext=0x100000", "-Wl,-N"]),
}
# Freestanding, at fixed addresses, with line numbers, and without anything that differs between machines.
COMMON = [
    "-nostdlib", "-static", "-no-pie", "-fno-pie", "-ffile-prefix-map=" + str(HERE) + "=guest_programs",
    "-Wl,--build-id=none", "-Wl,-z,max-page-size=4096", "-Wl,-z,noexecstack", "-Wl,--no-warn-rwx-segments", "-g1",
    "-I" + str(HERE / "include"),
]  # fmt: skip
C_ONLY = [
    "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls",
    "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
]  # fmt: skip
VDSO = "vdso"
VDSO_IMAGES = HERE.parent / "emulator" / "linux" / "arch" / VDSO
VDSO_OPTIONS = [
    "-nostdlib", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-Wl,-z,max-page-size=4096", "-Wl,-z,noexecstack",
    "-Wl,-z,norelro", "-Wl,--hash-style=both", "-Wl,--eh-frame-hdr", "-Wl,-Bsymbolic", "-Wl,--no-undefined",
    "-Wl,-soname,linux-vdso.so.1", "-Wl,-T,vdso.lds", "-Wl,-s",
]  # fmt: skip
RUNTIME = [HERE / "include" / "runtime.c"]


def programs() -> list[str]:
    return sorted([VDSO, *(path.parent.name for path in HERE.glob("*/expected.toml"))])


def sources(name: str, isa: str) -> list[Path]:
    """What `name` is built from for `isa`, or for a board; empty where it does not exist for it."""
    directory = HERE / name
    assembly = directory / f"{isa}.S"
    if assembly.exists():
        return [assembly]
    main = directory / "main.c"
    return [main, *RUNTIME, HERE / "include" / f"start.{isa}.S"] if main.exists() and isa in COMPILERS else []


def checked_in(name: str, isa: str) -> Path:
    return (VDSO_IMAGES if name == VDSO else HERE / name) / f"{isa}.elf"


def build(name: str, isa: str, output: Path) -> None:
    of_board, place = BOARDS.get(isa, (isa, []))
    compiler, package, isa_options = COMPILERS[of_board]
    if shutil.which(compiler) is None:
        sys.exit(f"{compiler} not found: install {package}")
    files = sources(name, isa)
    if name == VDSO:
        script = f"-Wl,--version-script={isa}.map"
        command = [compiler, *VDSO_OPTIONS, *isa_options, script, "-o", str(output.resolve()), files[0].name]
        subprocess.run(command, check=True, cwd=HERE / VDSO)
        output.chmod(0o644)
        return
    options = [*COMMON, *isa_options, *place, "-Wa,-Iinclude", *options_in(files[0])]
    with tempfile.TemporaryDirectory(prefix="guest-objects-") as objects:
        for file in files:
            language_options = C_ONLY if file.suffix == ".c" else []
            to_object = ["-c", "-o", f"{objects}/{file.stem}.o", str(file.relative_to(HERE))]
            subprocess.run([compiler, *options, *language_options, *to_object], check=True, cwd=HERE)
        # The linker records the objects' names, so they must not carry a temporary directory's.
        names = [f"{file.stem}.o" for file in files]
        subprocess.run([compiler, *options, "-o", str(output.resolve()), *names], check=True, cwd=objects)
    output.chmod(0o755)


def options_in(source: Path) -> list[str]:
    """Options that a source asks for in its first lines: `build: -Wl,-z,...`."""
    for line in source.read_text(encoding="utf-8").splitlines()[:10]:
        if "build: " in line:
            return line.split("build: ", 1)[1].split()
    return []


def read_sums() -> dict[str, str]:
    if not SUMS.exists():
        return {}
    return {name: digest for digest, name in (line.split() for line in SUMS.read_text(encoding="utf-8").splitlines())}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the guest programs and compare them with SHA256SUMS.")
    parser.add_argument("--write", action="store_true", help="replace the checked-in programs and their hashes")
    parser.add_argument("--output", type=Path, help="where to put the programs instead of comparing them")
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    arguments = parser.parse_args()
    sums = read_sums()
    differing = []
    with tempfile.TemporaryDirectory(prefix="guest-programs-") as temporary:
        for name in arguments.names or programs():
            for isa in (*COMPILERS, *BOARDS):
                if not sources(name, isa):
                    continue
                file = f"{name}/{isa}.elf"
                built = (arguments.output or Path(temporary)) / file
                built.parent.mkdir(parents=True, exist_ok=True)
                build(name, isa, built)
                if sha256(built) != sums.get(file):
                    differing.append(file)
                    if arguments.write:
                        shutil.copy(built, checked_in(name, isa))
                        sums[file] = sha256(built)
    if arguments.write:
        SUMS.write_text("".join(f"{sums[file]}  {file}\n" for file in sorted(sums)), encoding="utf-8")
        print(f"wrote {len(differing)} programs" + "".join(f"\n  {file}" for file in differing))
        return 0
    for file in differing:
        print(f"{file}: differs from the checked-in program; build.py --write accepts it", file=sys.stderr)
    return 1 if differing and not arguments.output else 0


if __name__ == "__main__":
    sys.exit(main())
