"""The chat as a person uses it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui import samples
from gui.chat.pane import ChatPane
from gui.theme import DARK, LIGHT
from runtime.cluster.messages import Rejected, Text


@pytest.fixture
def pane(qtbot, dressed):
    made = ChatPane(DARK)
    qtbot.addWidget(made)
    made.resize(520, 420)
    made.set_blocked(None)
    with qtbot.waitExposed(made):
        made.show()
    return made


def ask(pane, text):
    box = pane.composer.box
    box.setPlainText(text)
    QTest.keyClick(box, Qt.Key.Key_Return)
    return pane.exchanges[-1].request_id


def answer(pane, text):
    request = pane.exchanges[-1].request_id
    for start in range(0, len(text), 5):
        pane.receive(Text(request, text[start : start + 5], (1,)))
    pane.receive(samples.finished(request))
    QApplication.processEvents()


def scroll(pane):
    return pane._turns.verticalScrollBar()


def test_enter_sends_and_empties_the_box(qtbot, pane):
    with qtbot.waitSignal(pane.asked) as asked:
        ask(pane, "  What is the capital of France?\n")
    chat = asked.args[0]
    assert [message.content for message in chat.messages] == ["What is the capital of France?"]
    assert pane.composer.box.toPlainText() == ""


def test_shift_enter_begins_a_new_line(pane):
    box = pane.composer.box
    height = box.height()
    QTest.keyClicks(box, "one")
    QTest.keyClick(box, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(box, "two")
    assert box.toPlainText() == "one\ntwo"
    assert box.height() > height
    assert pane.exchanges == ()


def test_an_answer_streams_and_ends_with_what_was_measured(pane):
    request = ask(pane, "What is the capital of France?")
    shown = pane.answers[0]
    assert shown.footer == "Waiting for the first token…"
    pane.receive(Text(request, "The capital is **Par", (1, 2)))
    assert shown.footer == ""
    pane.receive(Text(request, "is**.", (3,)))
    pane.receive(samples.finished(request))
    assert shown.text == "The capital is Paris."
    assert shown.footer == "TTFT 0.4 s · 31.2 tok/s · 57 tokens"


def test_the_button_stops_an_answer_while_there_is_one(qtbot, pane):
    request = ask(pane, "Tell me a long story")
    assert pane.composer.button.text() == "Stop"
    with qtbot.waitSignal(pane.cancel_wanted) as cancelled:
        pane.composer.button.click()
    assert cancelled.args == [request]
    pane.receive(samples.finished(request))
    assert pane.composer.button.text() == "Send"


def test_while_the_model_answers_enter_keeps_the_next_question(qtbot, pane):
    ask(pane, "First")
    with qtbot.assertNotEmitted(pane.asked):
        ask(pane, "Second")
    assert pane.composer.box.toPlainText() == "Second"


def test_what_cannot_be_sent_says_why_in_text_and_tooltip_and_stays_in_the_box(qtbot, pane):
    pane.set_blocked("Start the model to chat")
    with qtbot.assertNotEmitted(pane.asked):
        pane.composer.box.setPlainText("Hello")
        QTest.keyClick(pane.composer.box, Qt.Key.Key_Return)
    assert pane.composer.hint == "Start the model to chat"
    assert pane.composer.button.toolTip() == "Start the model to chat"
    assert not pane.composer.button.isEnabled()
    assert pane.composer.box.toPlainText() == "Hello"
    pane.set_blocked(None)
    assert pane.composer.button.isEnabled()


def test_an_empty_box_says_what_is_missing(pane):
    assert not pane.composer.button.isEnabled()
    assert pane.composer.button.toolTip() == "Write something to send"


def test_the_next_question_takes_the_chat_along(qtbot, pane):
    ask(pane, "Name a river")
    answer(pane, "The Rhine")
    with qtbot.waitSignal(pane.asked) as asked:
        ask(pane, "And another")
    assert [message.content for message in asked.args[0].messages] == ["Name a river", "The Rhine", "And another"]


def test_a_session_that_ends_keeps_the_text_and_says_why(pane):
    request = ask(pane, "Tell me a story")
    pane.receive(Text(request, "Once upon a time", (1,)))
    pane.session_over("Virtual B stopped answering.")
    assert pane.answers[0].text == "Once upon a time"
    assert pane.answers[0].error == "Virtual B stopped answering."
    assert not pane.answering


def test_a_rejected_question_says_why_in_its_place(pane):
    request = ask(pane, "x" * 5000)
    pane.receive(Rejected(request, "The chat is longer than the model's context."))
    assert pane.answers[0].error == "The chat is longer than the model's context."


def test_a_new_chat_leaves_the_old_one_to_go_on(qtbot, pane):
    request = ask(pane, "Tell me a story")
    with qtbot.assertNotEmitted(pane.cancel_wanted):
        pane._new.click()
    assert pane.exchanges == ()
    assert pane._new.toolTip() == "This chat is still empty"
    pane.receive(Text(request, "Once upon a time", (1,)))
    assert pane.answers == ()
    pane.show_chat(1)
    assert pane.answers[0].text == "Once upon a time"
    assert pane.answering
    pane.receive(samples.finished(request))
    assert not pane.answering


def test_chats_are_listed_by_their_first_question_and_can_be_deleted(pane):
    first = "Tell me a story about a lighthouse that nobody had seen for years"
    ask(pane, first)
    answer(pane, "Once")
    pane.new_chat()
    ask(pane, "Hello")
    pane._fill_menu()
    texts = [action.text() for action in pane._menu.actions() if action.text()]
    assert texts == ["Hello", "Tell me a story about a lighthouse that…", "Delete This Chat"]
    pane.delete_chat()
    assert [one.question for one in pane.exchanges] == [first]
    assert pane.answers[0].text == "Once"


def test_an_answer_can_be_asked_for_again(qtbot, pane):
    ask(pane, "Name a river")
    answer(pane, "The Rhine")
    with qtbot.waitSignal(pane.asked) as asked:
        pane.answers[0].again.click()
    assert [message.content for message in asked.args[0].messages] == ["Name a river"]
    assert len(pane.exchanges) == 1
    assert pane.answers[0].text == ""
    answer(pane, "The Elbe")
    assert pane.answers[0].text == "The Elbe"


def test_a_question_can_be_asked_in_other_words_and_what_followed_is_replaced(qtbot, pane):
    for question in ("Name a river", "And another", "And one more"):
        ask(pane, question)
        answer(pane, "The Rhine")
    pane._turns._column.itemAt(3).widget().edit.click()
    assert pane.composer.box.toPlainText() == "And another"
    with qtbot.waitSignal(pane.asked) as asked:
        ask(pane, "And a lake")
    assert [message.content for message in asked.args[0].messages] == ["Name a river", "The Rhine", "And a lake"]
    assert [one.question for one in pane.exchanges] == ["Name a river", "And a lake"]


def test_editing_can_be_given_up(pane):
    ask(pane, "Name a river")
    answer(pane, "The Rhine")
    pane.edit_last()
    QTest.keyClick(pane.composer.box, Qt.Key.Key_Escape)
    assert pane.composer.box.toPlainText() == ""
    ask(pane, "Another")
    assert len(pane.exchanges) == 2


def test_the_settings_of_a_chat_go_with_its_questions(qtbot, pane):
    pane.tune.click()
    pane.settings.system.setPlainText("Be brief.")
    pane.settings.temperature.setValue(0.7)
    pane.settings.seed.setValue(7)
    with qtbot.waitSignal(pane.asked) as asked:
        ask(pane, "Hello")
    chat = asked.args[0]
    assert (chat.messages[0].role, chat.messages[0].content) == ("system", "Be brief.")
    assert (chat.temperature, chat.seed, chat.max_tokens) == (0.7, 7, 1024)


def test_reasoning_is_folded_and_can_be_read(pane):
    request = ask(pane, "What is 2 + 2?")
    shown = pane.answers[0]
    for piece in ("<th", "ink>\nTwo and", " two.\n"):
        pane.receive(Text(request, piece, (1,)))
        shown._write()
    assert shown.text == ""
    assert shown.fold.text().endswith("Thinking… 3 words")
    assert not shown._thought.isVisible()
    pane.receive(Text(request, "</think>\n\nIt is **4**.", (1,)))
    pane.receive(samples.finished(request))
    assert (shown.text, shown.reasoning) == ("It is 4.", "Two and two.")
    QApplication.processEvents()
    shown.fold.click()
    assert shown._thought.isVisible()


def test_the_meter_says_how_much_of_the_context_is_used_while_an_answer_grows_too(pane):
    pane.set_split("5 | 18 | 7", 8192)
    request = ask(pane, "Hello")
    pane.receive(Text(request, "Hi", (1,), context_tokens=43))
    assert pane.composer.meter.words == "43 of 8,192 tokens"
    answer(pane, " there")
    assert pane.composer.meter.words == "99 of 8,192 tokens"
    ask(pane, "And?")
    assert pane.composer.meter.words == "99 of 8,192 tokens"


def test_the_end_is_followed_only_while_it_is_in_view(pane):
    for _ in range(4):
        ask(pane, "More")
        answer(pane, "\n\n".join(["A paragraph of text."] * 6))
    bar = scroll(pane)
    assert bar.maximum() > 0
    assert bar.value() == bar.maximum()
    ask(pane, "Even more")
    bar.setValue(bar.maximum() // 2)
    there = bar.value()
    answer(pane, "\n\n".join(["A paragraph of text."] * 6))
    assert bar.value() == there
    newest = pane._turns._jump
    assert newest.isVisible()
    newest.click()
    assert bar.value() == bar.maximum()
    assert not newest.isVisible()


def test_a_turn_is_as_tall_as_its_text_at_any_width(pane):
    ask(pane, "A question that is long enough to need several lines in a narrow window. " * 3)
    answer(pane, "An answer that is long enough to need several lines in a narrow window. " * 8)
    prose = pane.answers[0]._prose
    heights = []
    for width in (900, 600, 400):
        pane.resize(width, 420)
        QApplication.processEvents()
        assert prose.height() >= prose.document().size().height() - 1
        heights.append(prose.height())
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]


def test_markup_in_a_question_or_an_error_stays_text(pane):
    request = ask(pane, "<b>bold?</b>")
    pane.receive(Rejected(request, "<img src='file:///etc/passwd'> is not allowed"))
    question = pane._turns._column.itemAt(1).widget()
    assert question._bubble._prose.toPlainText() == "<b>bold?</b>"
    assert pane.answers[0]._error.textFormat() is Qt.TextFormat.PlainText


def test_another_appearance_rewrites_the_answers(pane):
    ask(pane, "Hello")
    answer(pane, "**Hi** `there`")
    before = pane.answers[0].text
    pane.set_theme(LIGHT)
    assert pane.answers[0].text == before
    cursor = pane.answers[0]._prose.document().begin().begin().fragment()
    assert cursor.charFormat().foreground().color() == LIGHT.text


def test_assistive_technology_hears_who_says_what(pane):
    ask(pane, "Hello")
    answer(pane, "Hi there")
    assert pane.answers[0].accessibleName() == "Model: Hi there TTFT 0.4 s · 31.2 tok/s · 57 tokens"
    box = QAccessible.queryAccessibleInterface(pane.composer.box)
    assert box.text(QAccessible.Text.Name) == "Message to the model"
    assert box.role() == QAccessible.Role.EditableText
    button = QAccessible.queryAccessibleInterface(pane.composer.button)
    assert button.text(QAccessible.Text.Name) == "Send the message"
