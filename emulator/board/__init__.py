"""board: the machines that carry a kernel which was not modelled: RAM, devices, firmware, and what the CPU is told."""
