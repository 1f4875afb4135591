"""What is sent to the model, and what is said under its answers."""

import pytest

from gui.chat.conversation import Exchange, footer_words, messages_for, went_on_words
from gui.session import Change, Outcome
from runtime.cluster.messages import ChatMessage, Finished, Rejected, Text


def finished(reason="stop", tokens=57, rate=31.24):
    return Finished("1", reason, 42, tokens, 0.41, rate)


def said(message):
    return footer_words(Exchange("1", "Why?", "Because").received(message))


def test_the_footer_says_time_to_first_token_speed_and_length():
    assert said(finished()) == "TTFT 0.4 s · 31.2 tok/s · 57 tokens"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (finished("length"), "TTFT 0.4 s · 31.2 tok/s · 57 tokens · cut at the length limit"),
        (finished("cancelled"), "TTFT 0.4 s · 31.2 tok/s · 57 tokens · stopped"),
        (finished(tokens=1, rate=0), "TTFT 0.4 s · 1 token"),
        (finished("cancelled", tokens=0, rate=0), "0 tokens · stopped"),
    ],
)
def test_the_footer_says_how_an_answer_ended(message, words):
    assert said(message) == words


def test_the_footer_says_on_which_split_and_what_interrupted_it():
    exchange = Exchange("1", "Why?", split="5 | 18 | 7").paused("The split changes.")
    assert exchange.pause == "The split changes."
    loss = Change(0.0, "Virtual B is gone.", "virtual-b")
    exchange = exchange.went_on(went_on_words(Outcome(loss, 2.3, 0, "Virtual B"))).received(finished())
    assert exchange.pause == ""
    assert footer_words(exchange).endswith("57 tokens · on 5 | 18 | 7 · paused 2.3 s, went on without Virtual B")


def test_half_an_answer_is_marked():
    half = Exchange("1", "Why?", "Beca", split="30").failed("Virtual B is gone.")
    assert footer_words(half) == "on 30 · not complete"


def test_text_grows_until_the_answer_is_finished():
    exchange = Exchange("1", "Why?").received(Text("1", "Be", (1,))).received(Text("1", "cause", (2,)))
    assert exchange.answer == "Because"
    assert exchange.open
    assert not exchange.received(finished()).open


def test_a_rejected_question_says_why():
    exchange = Exchange("1", "Why?").received(Rejected("1", "The chat is longer than the model's context."))
    assert exchange.error == "The chat is longer than the model's context."
    assert not exchange.open


def test_a_failed_session_leaves_the_text_and_finished_answers_alone():
    half = Exchange("1", "Why?", "Because").failed("Virtual B is gone.")
    assert (half.answer, half.error) == ("Because", "Virtual B is gone.")
    whole = Exchange("1", "Why?", "Because", finished())
    assert whole.failed("Virtual B is gone.") is whole


def test_the_model_is_sent_the_chat_so_far():
    past = [Exchange("1", "Hello", "Hi!", finished()), Exchange("2", "Name a river", "The Rhi", error="gone")]
    assert messages_for(past, "Go on") == (
        ChatMessage("user", "Hello"),
        ChatMessage("assistant", "Hi!"),
        ChatMessage("user", "Name a river"),
        ChatMessage("assistant", "The Rhi"),
        ChatMessage("user", "Go on"),
    )


def test_the_system_prompt_comes_first_and_reasoning_is_not_sent_again():
    past = [Exchange("1", "Hello", "<think>\nA greeting.\n</think>\n\nHi!", finished())]
    assert messages_for(past, "Go on", "Be brief.") == (
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Hello"),
        ChatMessage("assistant", "Hi!"),
        ChatMessage("user", "Go on"),
    )


def test_questions_without_an_answer_are_not_sent_again():
    past = [Exchange("1", "Hello", "", error="gone"), Exchange("2", "Hello?", " \n", finished())]
    assert messages_for(past, "Anyone?") == (ChatMessage("user", "Anyone?"),)
