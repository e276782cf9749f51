"""What is where on the board virt, and the device tree that tells a kernel so."""

from __future__ import annotations

from emulator.board.board_cpu import PMU_INTERRUPT, PROFILING_INTERRUPT
from emulator.board.device_tree import Node, Property, cells
from emulator.board.generic_timer import PHYSICAL_INTERRUPT, VIRTUAL_INTERRUPT
from emulator.board.gic import DISTRIBUTOR_BYTES, GICV2, GICV3, PRIVATE, REDISTRIBUTOR_BYTES
from emulator.board.gicv2 import INTERFACE_BYTES
from emulator.board.virtio.slots import FIRST_INTERRUPT, FIRST_SLOT, SLOT_BYTES, SLOTS

RAM_BASE = 0x4000_0000
GIC_DISTRIBUTOR, GIC_INTERFACES, GIC_REDISTRIBUTORS = 0x0800_0000, 0x0801_0000, 0x080A_0000
UART, UART_BYTES, UART_INTERRUPT = 0x0900_0000, 0x1000, PRIVATE + 1
RTC, RTC_BYTES, RTC_INTERRUPT = 0x0901_0000, 0x1000, PRIVATE + 2
UART_CLOCK_HZ = 24_000_000
SECURE_TIMER, HYPERVISOR_TIMER = 29, 26  # PPIs that nothing raises; bindings want a number
GIC_HANDLE, CLOCK_HANDLE, CPU_CLOCK_HANDLE, OPERATING_POINTS_HANDLE = 1, 2, 3, 4  # phandles
LEVEL_HIGH, PPI, SPI = 4, 1, 0  # cells of an interrupt
FIRST_PPI = 16


def device_tree(
    *,
    cpus: int,
    gic_version: int,
    ram_bytes: int,
    command_line: str,
    seed: int,
    has_pmu: bool,
    initrd: tuple[int, int] | None,
    has_profiling: bool = False,
    highest_hz: int | None = None,
) -> Node:
    """`seed`: of the kernel's random numbers. `initrd`: its first address, and the one behind it. `highest_hz`: of CPUs
    whose frequency changes; a kernel is told the highest alone, since it has no say in it.

    Bindings: Documentation/devicetree/bindings of Linux.
    """
    chosen = Node("chosen", {"bootargs": command_line, "stdout-path": f"/pl011@{UART:x}"})
    chosen.properties["rng-seed"] = seed.to_bytes(8, "little") * 4
    chosen.properties["kaslr-seed"] = cells(seed)  # where an arm64 kernel puts itself, its modules and its linear map
    if initrd is not None:
        chosen.properties |= {"linux,initrd-start": cells(initrd[0]), "linux,initrd-end": cells(initrd[1])}
    root: dict[str, Property] = {
        "interrupt-parent": (GIC_HANDLE,),
        "#address-cells": (2,),
        "#size-cells": (2,),
        "compatible": "linux,dummy-virt",
        "model": "perfemu,virt",
    }
    memory = Node(f"memory@{RAM_BASE:x}", {"device_type": "memory", "reg": cells(RAM_BASE, ram_bytes)})
    psci = Node("psci", {"compatible": ["arm,psci-1.0", "arm,psci-0.2"], "method": "hvc"})
    devices = [
        _timer(),
        _clock(),
        _uart(),
        _real_time_clock(),
        _gic(cpus, gic_version),
        *map(_virtio_slot, range(SLOTS)),
    ]
    if has_pmu:
        devices.append(_pmu())
    if has_profiling:
        devices.append(_profiling())
    if highest_hz is not None and highest_hz >> 32:  # more than a fixed clock's property can say
        highest_hz = None
    if highest_hz is not None:
        devices += [_cpu_clock(highest_hz), _operating_points(highest_hz)]
    return Node("", root, [chosen, memory, _cpus(cpus, changes_frequency=highest_hz is not None), psci, *devices])


def _cpus(count: int, *, changes_frequency: bool) -> Node:
    points: dict[str, Property] = {"clocks": (CPU_CLOCK_HANDLE,), "operating-points-v2": (OPERATING_POINTS_HANDLE,)}
    more = points if changes_frequency else {}
    cpus = [
        Node(
            f"cpu@{number:x}",
            {"device_type": "cpu", "compatible": "arm,armv8", "reg": (number,), "enable-method": "psci", **more},
        )
        for number in range(count)
    ]
    return Node("cpus", {"#address-cells": (1,), "#size-cells": (0,)}, cpus)


def _timer() -> Node:
    numbers = SECURE_TIMER, PHYSICAL_INTERRUPT, VIRTUAL_INTERRUPT, HYPERVISOR_TIMER
    interrupts = tuple(cell for number in numbers for cell in (PPI, number - FIRST_PPI, LEVEL_HIGH))
    return Node("timer", {"compatible": "arm,armv8-timer", "interrupts": interrupts, "always-on": b""})


def _pmu() -> Node:
    return Node("pmu", {"compatible": "arm,armv8-pmuv3", "interrupts": (PPI, PMU_INTERRUPT - FIRST_PPI, LEVEL_HIGH)})


def _profiling() -> Node:
    interrupts = (PPI, PROFILING_INTERRUPT - FIRST_PPI, LEVEL_HIGH)
    return Node("spe-pmu", {"compatible": "arm,statistical-profiling-extension-v1", "interrupts": interrupts})


def _cpu_clock(hz: int) -> Node:
    properties: dict[str, Property] = {"compatible": "fixed-clock", "#clock-cells": (0,), "clock-frequency": (hz,)}
    return Node("cpu-clk", properties | {"phandle": (CPU_CLOCK_HANDLE,)})


def _operating_points(hz: int) -> Node:
    """One, for all CPUs. opp/opp-v2.yaml."""
    table: dict[str, Property] = {"compatible": "operating-points-v2", "opp-shared": b""}
    point = Node(f"opp-{hz}", {"opp-hz": cells(hz)})
    return Node("opp-table", table | {"phandle": (OPERATING_POINTS_HANDLE,)}, [point])


def _clock() -> Node:
    return Node(
        "apb-pclk",
        {
            "compatible": "fixed-clock",
            "#clock-cells": (0,),
            "clock-frequency": (UART_CLOCK_HZ,),
            "phandle": (CLOCK_HANDLE,),
        },
    )


def _uart() -> Node:
    return Node(
        f"pl011@{UART:x}",
        {
            "compatible": ["arm,pl011", "arm,primecell"],
            "reg": cells(UART, UART_BYTES),
            "interrupts": (SPI, UART_INTERRUPT - PRIVATE, LEVEL_HIGH),
            "clocks": (CLOCK_HANDLE, CLOCK_HANDLE),
            "clock-names": ["uartclk", "apb_pclk"],
        },
    )


def _real_time_clock() -> Node:
    return Node(
        f"pl031@{RTC:x}",
        {
            "compatible": ["arm,pl031", "arm,primecell"],
            "reg": cells(RTC, RTC_BYTES),
            "interrupts": (SPI, RTC_INTERRUPT - PRIVATE, LEVEL_HIGH),
            "clocks": (CLOCK_HANDLE,),
            "clock-names": "apb_pclk",
        },
    )


def _virtio_slot(number: int) -> Node:
    """Each is told of, whether or not a device is there: a driver asks."""
    start = FIRST_SLOT + number * SLOT_BYTES
    return Node(
        f"virtio_mmio@{start:x}",
        {
            "compatible": "virtio,mmio",
            "reg": cells(start, SLOT_BYTES),
            "interrupts": (SPI, FIRST_INTERRUPT + number - PRIVATE, LEVEL_HIGH),
            "dma-coherent": b"",
        },
    )


def _gic(cpus: int, version: int) -> Node:
    compatible, second = {
        GICV2: ("arm,cortex-a15-gic", (GIC_INTERFACES, INTERFACE_BYTES)),
        GICV3: ("arm,gic-v3", (GIC_REDISTRIBUTORS, cpus * REDISTRIBUTOR_BYTES)),
    }[version]
    return Node(
        f"intc@{GIC_DISTRIBUTOR:x}",
        {
            "compatible": compatible,
            "interrupt-controller": b"",
            "#interrupt-cells": (3,),
            "reg": cells(GIC_DISTRIBUTOR, DISTRIBUTOR_BYTES, *second),
            "phandle": (GIC_HANDLE,),
        },
    )
