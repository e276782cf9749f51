"""Two's complement: C's signed numbers, in the low bits of what registers and memory hold."""

INT, LONG = 32, 64  # bits


def signed(value: int, bits: int) -> int:
    """The two's complement number in the low `bits`."""
    half = 1 << bits - 1
    return (value & (1 << bits) - 1 ^ half) - half
