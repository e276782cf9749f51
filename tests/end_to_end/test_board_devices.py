"""The drivers of Debian's kernel find the board's devices, and use them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from random import Random

import debian_kernel
from emulator.machine import MachineConfig
from tests.end_to_end.command import ENVIRONMENT, PERFEMU
from tests.end_to_end.test_board_kernels import TIMEOUT_S, said

SECTOR = 512
DISK = b"".join(f"sector {number:4}".encode().ljust(SECTOR, b".") for number in range(4096))
DATE = 1_700_000_000
INSMOD = "insmod /modules/{}.ko\n"
VIRTIO = ("virtio_mmio", "virtio_blk", "virtio-rng", "virtio_console")
SCRIPT = """
cat /sys/class/rtc/rtc0/name /sys/class/rtc/rtc0/since_epoch
cat /sys/block/vda/size /sys/block/vdb/size /sys/block/vda/serial; echo
dd if=/dev/vda bs=512 skip=1234 count=1 2> /dev/null | cut -c 1-11
printf 'written here' | dd of=/dev/vda bs=512 seek=77 conv=notrunc 2> /dev/null
printf 'and kept here' | dd of=/dev/vdb bs=512 seek=4095 conv=notrunc,fsync 2> /dev/null
sync
echo 3 > /proc/sys/vm/drop_caches
dd if=/dev/vda bs=512 skip=77 count=1 2> /dev/null | cut -c 1-17; echo
sha256sum /dev/vdb | cut -d ' ' -f 1
cat /sys/class/misc/hw_random/rng_current
head -c 8 /dev/hwrng | hexdump -v -e '8/1 "%02x"'; echo
read line < /dev/hvc0
echo "heard $line"
echo to hvc0 > /dev/hvc0
sleep 1
"""


def run(folder: Path) -> list[str]:
    initrd, kept = folder / "initrd", folder / "kept"
    kept.write_bytes(DISK)
    (folder / "disk").write_bytes(DISK)
    script = "".join(map(INSMOD.format, VIRTIO)) + SCRIPT
    initrd.write_bytes(debian_kernel.initramfs(script, *debian_kernel.modules(*VIRTIO)))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "virt", "--core", "ideal", "--memory", "512M", "--console", "virtio"]
        + ["--initrd", initrd, "--append", "console=ttyAMA0 quiet", "--disk", folder / "disk", "--disk", f"{kept},rw"]
        + [debian_kernel.kernel()],
        input=b"a line\n", capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return said(done.stdout.decode().splitlines())


def test_drivers_use_the_devices(tmp_path: Path) -> None:
    rtc, date, *blocks, digest, rng, random, echoed, heard, sent = run(tmp_path)
    assert rtc == "rtc-pl031 9010000.pl031"
    assert 0 <= int(date) - DATE < 10  # of the machine's own seconds
    assert blocks == ["4096", "4096", "disk0", "sector 1234", "written here.....", ""]
    # One disk forgets, the other keeps.
    kept = (tmp_path / "kept").read_bytes()
    assert kept == DISK[: 4095 * SECTOR] + b"and kept here" + DISK[4095 * SECTOR + 13 :]
    assert (tmp_path / "disk").read_bytes() == DISK
    assert digest == hashlib.sha256(kept).hexdigest()
    assert rng == "virtio_rng.0"
    assert bytes.fromhex(random) in Random(MachineConfig("aarch64").seed).randbytes(4096)
    assert (echoed, heard, sent) == ("a line", "heard a line", "to hvc0")
