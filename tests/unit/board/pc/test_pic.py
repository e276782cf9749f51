"""The 8259s by their ports. Expectations: Intel 8259A data sheet."""

from __future__ import annotations

from emulator.board.pc.pic import EdgeLevelPorts, PicPorts, Pics


class Pair:
    """Set up as PCs have them: vectors from 20H and from 28H, all masked."""

    def __init__(self, icw4: int = 1) -> None:
        self.asserted = False
        self.pics = Pics(self._note)
        self.first, self.second = PicPorts(self.pics.first), PicPorts(self.pics.second)
        for ports, base, wiring in ((self.first, 0x20, 4), (self.second, 0x28, 2)):
            ports.write(0, 1, 0x11)
            for word in (base, wiring, icw4, 0xFF):
                ports.write(1, 1, word)

    def _note(self, asserted: bool) -> None:
        self.asserted = asserted

    def unmask(self, first: int, second: int = 0) -> None:
        self.first.write(1, 1, ~first & 0xFF)
        self.second.write(1, 1, ~second & 0xFF)


def test_priorities_and_ends() -> None:
    pair = Pair()
    pair.unmask(0b1011)
    for interrupt in (3, 1):
        pair.pics.set_level(interrupt, True)
    assert (pair.asserted, pair.pics.acknowledge()) == (True, 0x21)
    assert not pair.asserted  # 3 has to wait for the end of 1
    pair.pics.set_level(0, True)
    assert (pair.asserted, pair.pics.acknowledge()) == (True, 0x20)
    pair.first.write(0, 1, 0x0B)  # read ISR
    assert pair.first.read(0, 1) == 0b11
    pair.first.write(0, 1, 0x20)  # EOI: of the highest, 0
    assert pair.first.read(0, 1) == 0b10
    pair.first.write(0, 1, 0x61)  # EOI of 1
    assert (pair.first.read(0, 1), pair.pics.acknowledge()) == (0, 0x23)


def test_the_second_is_at_pin_2_of_the_first() -> None:
    pair = Pair()
    pair.unmask(0b100, 0b1)
    pair.pics.set_level(8, True)
    assert (pair.asserted, pair.pics.acknowledge()) == (True, 0x28)
    assert not pair.asserted
    pair.second.write(0, 1, 0x20)
    pair.first.write(0, 1, 0x20)
    pair.pics.set_level(8, False)
    pair.pics.set_level(8, True)
    assert pair.pics.acknowledge() == 0x28


def test_an_edge_that_has_gone_is_spurious() -> None:
    pair = Pair()
    pair.unmask(0b10)
    pair.pics.set_level(1, True)
    pair.pics.set_level(1, False)
    assert not pair.asserted
    assert pair.pics.acknowledge() == 0x27
    pair.first.write(0, 1, 0x0B)
    assert pair.first.read(0, 1) == 0


def test_a_level_asks_again_after_its_end() -> None:
    pair = Pair()
    EdgeLevelPorts(pair.pics).write(0, 1, 0xFF)
    assert EdgeLevelPorts(pair.pics).read(0, 1) == 0xF8  # 0, 1 and 2 stay edges
    pair.unmask(0b10_0000)
    pair.pics.set_level(5, True)
    assert pair.pics.acknowledge() == 0x25
    pair.first.write(0, 1, 0x20)
    assert (pair.asserted, pair.pics.acknowledge()) == (True, 0x25)


def test_the_mask_is_read_back_and_requests_are_seen_behind_it() -> None:
    pair = Pair()
    assert pair.first.read(1, 1) == 0xFF
    pair.pics.set_level(4, True)
    assert not pair.asserted
    pair.first.write(0, 1, 0x0A)  # read IRR
    assert pair.first.read(0, 1) == 0b1_0000


def test_automatic_ends() -> None:
    pair = Pair(icw4=3)
    pair.unmask(0b11)
    pair.pics.set_level(0, True)
    assert pair.pics.acknowledge() == 0x20
    pair.pics.set_level(1, True)
    assert pair.asserted
