"""Open requests between those who ask and whichever driver there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.cluster.answers import Answers, Outcome
from runtime.engine.frames import Done, Generated, Mask, Prefilled, Refused, Sampling, Submit, TokenLogprobs

if TYPE_CHECKING:
    from runtime.cluster.answers import Answer

SUBMIT = Submit(0, (1, 2, 3), 5, (), Sampling())


class Ear:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_token(self, token: int, logprobs: TokenLogprobs | None) -> None:
        self.heard.append(token if logprobs is None else (token, logprobs))

    def on_end(self, outcome: Outcome) -> None:
        self.heard.append(outcome)

    def on_refused(self, reason: str) -> None:
        self.heard.append(f"refused: {reason}")

    def on_broken(self, reason: str) -> None:
        self.heard.append(f"broken: {reason}")


class Counting:
    """A guide whose mask is how many tokens it has seen."""

    def __init__(self) -> None:
        self.seen = 0

    def take(self, token: int) -> None:
        self.seen += 1

    def mask(self) -> bytes:
        return bytes([self.seen])


@pytest.fixture
def masks() -> list[Mask]:
    return []


@pytest.fixture
def answers(masks) -> Answers:
    return Answers(masks.append)


def begin(answers: Answers, ear: Ear, guide: Counting | None = None) -> Answer:
    return answers.begin(SUBMIT, ear, guide, 0.0)


def test_an_answer_is_heard_with_its_end(answers):
    ear = Ear()
    answer = begin(answers, ear)
    answers.take(Prefilled(answer.number, 3, 2))
    answers.take(Generated((answer.number,), (7,), (TokenLogprobs(-1.0),)))
    answers.take(Generated((answer.number,), (8,)))
    answers.take(Done(answer.number, "stop"))
    outcome = ear.heard.pop()
    assert ear.heard == [(7, TokenLogprobs(-1.0)), 8]
    assert isinstance(outcome, Outcome)
    assert outcome[:4] == ("stop", 3, 2, 2)
    assert answers.active == 0


def test_the_next_driver_is_told_the_answer_so_far_and_masks_count_from_there(answers, masks):
    answer = begin(answers, Ear(), Counting())
    assert answer.submit.masked
    assert answer.next_mask() == Mask(0, 0, bytes([0]))
    answers.take(Generated((0,), (7,)))
    assert masks.pop() == Mask(0, 1, bytes([1]))
    submit, mask = answers.unfinished()
    assert isinstance(submit, Submit)
    assert (submit.prompt, submit.max_tokens) == ((1, 2, 3, 7), 4)
    assert mask == Mask(0, 0, bytes([1]))
    answers.take(Generated((0,), (8,)))
    assert masks.pop() == Mask(0, 1, bytes([2]))


def test_a_refusal_after_the_first_token_is_the_end(answers):
    ears = [Ear(), Ear()]
    for ear in ears:
        begin(answers, ear)
    answers.take(Generated((0,), (7,)))
    answers.take(Refused(0, "no room"))
    answers.take(Refused(1, "no room"))
    assert isinstance(ears[0].heard[-1], Outcome)
    assert ears[0].heard[-1].finish_reason == "length"
    assert ears[1].heard == ["refused: no room"]


def test_after_the_session_nobody_waits(answers):
    ears = [Ear(), Ear()]
    begin(answers, ears[0])
    answers.break_off("it is over")
    begin(answers, ears[1])
    assert [ear.heard for ear in ears] == [["broken: it is over"]] * 2
    assert answers.active == 0
