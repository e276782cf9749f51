"""AMD's core performance counters: registers, the device, events."""
