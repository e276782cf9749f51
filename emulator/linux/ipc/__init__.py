"""Objects of System V, and POSIX's message queues."""
