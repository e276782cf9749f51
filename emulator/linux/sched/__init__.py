"""Which task is on which CPU, and for how long; what wakes those that wait."""
