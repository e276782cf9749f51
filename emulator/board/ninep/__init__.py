"""9P2000.L: a directory of the host as a file system of the guest's."""
