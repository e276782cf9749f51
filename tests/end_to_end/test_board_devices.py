"""The drivers of Debian's kernel find the board's devices, and use them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
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
NINE_P = ("netfs", "fscache", "9pnet", "9pnet_virtio", "9p")
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


MOUNT = """
mkdir /tmp/read /tmp/write
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro reading /tmp/read
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 writing /tmp/write
exec 2>&1
cd /tmp/read
ls -lR | sed 's/  */ /g'
sha256sum large/file | cut -d ' ' -f 1
cat way-out; echo $?
cd /tmp/write
echo refused > read-only-file && chmod 4755 read-only-file
echo text > made; chmod 640 made; ln -s made link; ln made other; mkdir -p a/b; mv made a/b/moved
cp /tmp/read/large/file a/copy; truncate -s 1000 a/copy; readlink link
mkdir full; touch full/file; rmdir full; rm -r full
mv a renamed; cat renamed/b/moved; touch -d '2001-02-03 04:05:06' renamed/b
stat -c '%n %s %a %h %u' * renamed/*
stat -c %Y renamed/b
echo $(($(date +%s) - $(stat -c %Y other) <= 5))
mknod device c 1 3
dd if=/dev/zero of=big bs=64k count=32
"""


def boot(folder: Path, script: str, modules: Sequence[str], *options: str | Path, typed: bytes = b"") -> list[str]:
    initrd = folder / "initrd"
    script = "".join(map(INSMOD.format, modules)) + script
    initrd.write_bytes(debian_kernel.initramfs(script, *debian_kernel.modules(*modules)))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "virt", "--core", "ideal", "--memory", "512M", "--initrd", initrd, *options]
        + ["--append", "console=ttyAMA0 quiet", debian_kernel.kernel()],
        input=typed, capture_output=True, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return said(done.stdout.decode().splitlines())


def test_drivers_use_the_devices(tmp_path: Path) -> None:
    for name in ("disk", "kept"):
        (tmp_path / name).write_bytes(DISK)
    options = ["--console", "virtio", "--disk", tmp_path / "disk", "--disk", f"{tmp_path / 'kept'},rw"]
    lines = boot(tmp_path, SCRIPT, VIRTIO, *options, typed=b"a line\n")
    rtc, date, *blocks, digest, rng, random, echoed, heard, sent = lines
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


EXPECTED = """
.:
total 5
drwxr-xr-x 2 0 0 4096 Nov 14 22:11 large
lrwxrwxrwx 1 0 0 36 Nov 14 22:11 way-out -> /etc/../../../etc/passwd-of-the-host

./large:
total 977
-rw-r--r-- 1 0 0 1000000 Nov 14 22:11 file
DIGEST
cat: can't open 'way-out': No such file or directory
1
chmod: read-only-file: Operation not permitted
made
rmdir: 'full': Directory not empty
text
link 4 777 1 0
other 5 640 2 0
read-only-file 8 644 1 0
renamed 4096 755 2 0
renamed/b 4096 755 2 0
renamed/copy 1000 644 1 0
981173106
1
mknod: device: Operation not supported
dd: error writing 'big': No space left on device
17+0 records in
16+0 records out
"""


def test_directories_of_the_host(tmp_path: Path) -> None:
    reading, writing = tmp_path / "reading", tmp_path / "writing"
    (reading / "large").mkdir(parents=True)
    contents = Random(0).randbytes(1_000_000)
    (reading / "large/file").write_bytes(contents)
    (reading / "way-out").symlink_to("/etc/../../../etc/passwd-of-the-host")
    for path in (reading, reading / "large", reading / "large/file", reading / "way-out"):
        os.utime(path, (DATE - 100, DATE - 100), follow_symlinks=False)
    writing.mkdir()
    (writing / "read-only-file").write_bytes(b"")
    shares = ["--bind", f"{reading}:reading", "--bind", f"{writing}:writing:rw", "--max-output", "2M"]
    lines = boot(tmp_path, MOUNT, ("virtio_mmio", *NINE_P), *shares)
    digest = hashlib.sha256(contents).hexdigest()
    assert lines == EXPECTED.replace("DIGEST", digest).strip().splitlines()
    assert (writing / "read-only-file").read_bytes() == b"refused\n"
    assert (writing / "renamed/copy").read_bytes() == contents[:1000]
    assert (writing / "renamed/b/moved").samefile(writing / "other")
