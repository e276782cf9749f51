"""Devices of the board that a guest drives through queues in its memory: OASIS, Virtual I/O Device (VIRTIO) 1.2."""
