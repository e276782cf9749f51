"""LoongArch's performance monitors: registers, the device, events."""
