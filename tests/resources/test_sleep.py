"""When this machine slept, by clocks that the test holds."""

from __future__ import annotations

import time

from resources.node import LastSleep
from resources.sleep import SleepWatch, asleep_seconds, slept_words

AT_1402 = time.mktime((2026, 11, 30, 14, 2, 0, 0, 0, -1))


class Clocks:
    def __init__(self):
        self.asleep, self.wall = 100.0, AT_1402 - 60

    def watch(self):
        return SleepWatch(lambda: self.asleep, lambda: self.wall)

    def pass_by(self, seconds, asleep=0.0):
        self.wall += seconds + asleep
        self.asleep += asleep


def test_a_sleep_is_noticed_with_its_beginning_and_length():
    clocks = Clocks()
    watch = clocks.watch()
    clocks.pass_by(60)
    assert watch.look() is None
    clocks.pass_by(1, asleep=540)
    sleep = watch.look()
    assert sleep == LastSleep(AT_1402, 540)
    assert slept_words(sleep) == "slept at 14:02 for 9 min"
    clocks.pass_by(1)
    assert watch.look() == sleep  # it stays the last one


def test_a_sleep_counts_as_the_cause_of_trouble_for_a_while():
    clocks = Clocks()
    watch = clocks.watch()
    assert watch.within(30) is None
    clocks.pass_by(1, asleep=540)
    assert watch.within(30) is not None
    clocks.pass_by(28)
    assert watch.within(30) is not None
    clocks.pass_by(3)
    assert watch.within(30) is None


def test_setting_the_clock_is_no_sleep():
    clocks = Clocks()
    watch = clocks.watch()
    clocks.wall += 7200
    assert watch.look() is None


def test_a_drift_of_the_clocks_is_no_sleep():
    clocks = Clocks()
    watch = clocks.watch()
    for _ in range(1000):
        clocks.pass_by(1, asleep=0.01)
        assert watch.look() is None


def test_lengths_are_told_as_people_do():
    assert slept_words(LastSleep(AT_1402, 12)) == "slept at 14:02 for 12 s"
    assert slept_words(LastSleep(AT_1402, 7500)) == "slept at 14:02 for 2 h 5 min"


def test_this_machine_s_clocks_can_be_read():
    assert asleep_seconds() >= -0.001
    assert SleepWatch().look() is None
