"""Random: the machine's only source of random bytes, seeded, so that equal runs draw equal bytes."""

from __future__ import annotations

MASK = (1 << 64) - 1


class Random:
    """SplitMix64 (Steele, Lea, Flood 2014). Not for secrets: a guest must only not be able to tell it from noise.

    No 8-byte word is zero: glibc takes a zero tcache key or stack guard for "not initialised" and runs slow paths.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & MASK

    def word(self) -> int:
        """64 bits, not zero."""
        while True:
            self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
            z = self._state
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            z ^= z >> 31
            if z:
                return z

    def bytes(self, size: int) -> bytes:
        words = -(-size // 8)
        return b"".join(self.word().to_bytes(8, "little") for _ in range(words))[:size]
