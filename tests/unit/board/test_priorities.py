"""Which priorities preempt which: Arm IHI 0069, "Preemption", with 32 priorities in steps of 8."""

from __future__ import annotations

import pytest

from emulator.board.priorities import IDLE_PRIORITY, ActivePriorities


@pytest.mark.parametrize(
    ("first_bit", "active", "comes", "preempts"),
    [
        (0, 0x88, 0x80, True),  # there are no bits below bit 3
        (3, 0x80, 0x80, False),
        (3, 0x80, 0x88, False),
        (5, 0x98, 0x80, False),  # 0x80 to 0x98 are one group
        (5, 0x98, 0x78, True),
        (7, 0xF8, 0x80, False),
        (7, 0x80, 0x78, True),
        (8, 0xF8, 0x00, False),  # GICC_BPR 7: nothing preempts
    ],
)
def test_groups(first_bit: int, active: int, comes: int, preempts: bool) -> None:
    priorities = ActivePriorities()
    priorities.set_first_bit(first_bit)
    assert priorities.are_preempted_by(comes)  # while nothing runs
    priorities.start(active)
    assert priorities.are_preempted_by(comes) == preempts


def test_the_highest_ends_first() -> None:
    priorities = ActivePriorities()
    priorities.start(0xA0)
    priorities.start(0x40)
    assert (priorities.running, priorities.bits) == (0x40, 1 << 20 | 1 << 8)
    priorities.drop()
    assert priorities.running == 0xA0
    priorities.drop()
    assert priorities.running == IDLE_PRIORITY
    priorities.drop()
    assert priorities.bits == 0


def test_a_group_runs_with_its_first() -> None:
    priorities = ActivePriorities()
    priorities.set_first_bit(5)
    priorities.start(0x98)
    assert priorities.running == 0x80
