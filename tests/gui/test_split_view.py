"""The words on the cards."""

import pytest

from gui import samples
from gui.preview import make_preview
from gui.session import SessionState, received, started, stopping
from gui.split.card import Glyph, Tone
from gui.split.card_words import card_view
from gui.split.model import Split
from gui.split.view import editor_view, link_words
from gui.status import status
from runtime.cluster.links import Link, LinkEnd, NodePair
from runtime.cluster.messages import Failed, ModelFetch, Recovering

MACS = [known.resources for known in samples.macs()]


def views(counts, session=None, nodes=MACS, mode="pipeline", layout=samples.LARGE_MODEL):
    preview = make_preview(layout, nodes, Split(counts), mode)
    return editor_view(preview, session or SessionState(), len(layout.layer_bytes))


def planned(counts, nodes=MACS, layout=samples.LARGE_MODEL):
    preview = make_preview(layout, nodes, Split(counts), "pipeline")
    assert preview.plan is not None
    return preview, preview.plan


def test_a_card_says_what_is_needed_and_what_is_free():
    card = views((32, 19, 6, 4)).cards[0]
    assert (card.name, card.chip, card.layers) == ("Studio Ultra", "M3 Ultra · 192 GB · 819 GB/s", "32 layers")
    assert card.unit == "GB of 178 GB free"
    assert card.words.startswith("Fits · ")
    assert card.glyph is Glyph.CHECK


def test_a_card_without_room_says_how_much_is_missing_in_words_and_shape():
    card = views((26, 25, 6, 4)).cards[1]
    assert card.words == "Needs 18.0 GB more"
    assert (card.glyph, card.tone) == (Glyph.CROSS, Tone.BAD)
    assert card.outlined
    assert card.hatched
    assert card.limit is not None


def test_a_card_without_layers_is_left_out_and_says_how_to_get_some():
    card = views((32, 29, 0, 0)).cards[2]
    assert card.words == "Left out"
    assert card.faded
    assert "Drag a boundary" in card.tooltip


def test_parts_of_the_bar_never_go_past_its_end():
    for counts in ((26, 25, 6, 4), (61, 0, 0, 0), (0, 0, 0, 61)):
        for card in views(counts).cards:
            assert 0 <= card.used <= 1
            assert card.used + card.own <= 1 + 1e-9


def test_while_loading_cards_say_phase_and_bytes():
    preview, plan = planned((32, 19, 6, 4))
    session = started(plan)
    for message in samples.loading(plan, [("loading", 0.62), ("starting", 0.0), ("ready", 1.0), ("warming up", 1.0)]):
        session = received(session, message)
    cards = editor_view(preview, session, 61).cards
    assert (cards[0].words, cards[0].short_words, cards[0].detail) == (
        "Loading · 62% · 22 s left",
        "Loading · 62%",
        "2.8 GB/s",
    )
    assert cards[0].own == pytest.approx(0.62, abs=0.01)
    assert cards[0].unit.endswith("GB loaded")
    assert cards[1].words == "Starting a worker"
    assert cards[2].words == "Ready, waits for the others"
    assert (cards[3].words, cards[3].detail) == ("Warming up", "")
    rest, *_ = samples.loading(plan, [("warming up", 0.4)] * 4)
    assert editor_view(preview, received(session, rest), 61).cards[0].words == "Reading the rest, warming up"
    assert [card.words for card in editor_view(preview, stopping(session), 61).cards] == ["Stopping"] * 4


def test_a_node_that_fetches_says_how_much_how_fast_and_how_long():
    preview, plan = planned((32, 19, 6, 4))
    gib = 2**30
    session = received(started(plan), ModelFetch("mac-mini", "Mac mini", "from Studio", 3 * gib, 12 * gib, gib / 8, 72))
    card = editor_view(preview, session, 61).cards[3]
    assert (card.words, card.unit, card.detail) == (
        "Fetching · 25% · 1 min 12 s left",
        "GB of 12.0 GB fetched",
        "128 MB/s",
    )
    said = status(samples.LARGE_MODEL, preview, session).words
    assert said == "Fetching: 3.0 GB of 12.0 GB at 128 MB/s, 1 min 12 s left. Cancel to move boundaries."
    done = received(session, ModelFetch("mac-mini", "Mac mini", "", 12 * gib, 12 * gib))
    assert editor_view(preview, done, 61).cards[3].words == "Starting a worker"


def test_while_running_cards_say_what_is_held_and_which_layers():
    nodes = [known.resources for known in samples.virtual_nodes()]
    preview, plan = planned((5, 18, 7), nodes, samples.SMALL_MODEL)
    session = received(started(plan), samples.ready(plan))
    view = editor_view(preview, session, 30)
    assert view.locked is None
    assert view.cards[1].words == "Running · layers 5–22"
    assert view.cards[1].unit == "MB held"


def test_another_split_than_the_one_that_runs_says_what_would_change():
    nodes = [known.resources for known in samples.virtual_nodes()]
    _, plan = planned((5, 18, 7), nodes, samples.SMALL_MODEL)
    session = received(started(plan), samples.ready(plan))
    preview, _ = planned((9, 14, 7), nodes, samples.SMALL_MODEL)
    cards = editor_view(preview, session, 30).cards
    assert cards[0].layers == "5 → 9 layers"
    assert cards[0].words.endswith("now layers 0–4")
    assert cards[2].words == "Running · layers 23–29"


def test_a_lost_node_says_so_while_the_others_go_on():
    nodes = [known.resources for known in samples.virtual_nodes()]
    preview, plan = planned((5, 18, 7), nodes, samples.SMALL_MODEL)
    session = received(started(plan), samples.ready(plan))
    session = received(session, Recovering("Virtual B is gone.", "virtual-b"))
    view = editor_view(preview, session, 30)
    assert view.locked == "Wait until the split has changed"
    assert view.cards[1].words == "Lost, going on without"
    assert "Virtual B is gone." in view.cards[1].tooltip
    after = samples.plan_over(samples.SMALL_MODEL, [nodes[0], nodes[2]], (14, 16))
    session = received(session, samples.ready(after), 2.0)
    preview, _ = planned((14, 0, 16), nodes, samples.SMALL_MODEL)
    cards = editor_view(preview, session, 30).cards
    assert [card.words for card in cards] == [
        "Running · layers 0–13",
        "Lost, the session goes on",
        "Running · layers 14–29",
    ]


def test_a_card_names_the_way_to_the_next_node():
    end = LinkEnd("studio-max", "en5", "192.0.2.1"), LinkEnd("studio-ultra", "en5", "192.0.2.2")
    pair = NodePair(("studio-max", "studio-ultra"), ((), ()), (Link("Thunderbolt", end, 0.0004, 3.1e9),))
    assert link_words((pair,), "studio-ultra", "studio-max", "Studio Max") == (
        "→ Studio Max: Thunderbolt · 0.4 ms · 3.1 GB/s"
    )
    assert link_words((), "studio-ultra", "studio-max", "Studio Max") == ""


def test_a_node_without_layers_stays_left_out_while_the_others_run():
    nodes = [known.resources for known in samples.virtual_nodes()]
    preview, plan = planned((5, 0, 25), nodes, samples.SMALL_MODEL)
    loading = started(plan)
    assert editor_view(preview, loading, 30).cards[1].words == "Left out"
    running = received(loading, samples.ready(plan))
    assert editor_view(preview, running, 30).cards[1].words == "Left out"


def test_the_node_where_a_session_failed_is_marked():
    preview = make_preview(samples.LARGE_MODEL, MACS, Split((32, 19, 6, 4)), "pipeline")
    session = SessionState(failure=Failed("Studio Max stopped answering.", "studio-max"))
    cards = [card_view(share, session) for share in preview.shares]
    assert cards[1].words == "The last run failed here"
    assert cards[1].outlined
    assert not cards[1].hatched
    assert "Studio Max stopped answering." in cards[1].tooltip
    assert cards[0].words.startswith("Fits")


def test_in_tensor_mode_boundaries_are_locked_with_a_reason():
    nodes = [known.resources for known in samples.virtual_nodes()]
    view = views((10, 10, 10), nodes=nodes, mode="tensor", layout=samples.SMALL_MODEL)
    assert view.locked
    assert [card.layers for card in view.cards] == ["all layers"] * 3


def test_a_virtual_node_is_called_virtual():
    nodes = [known.resources for known in samples.virtual_nodes("Xeon")]
    assert (
        views((10, 10, 10), nodes=nodes, layout=samples.SMALL_MODEL).cards[0].chip == "Xeon · 1 GB · 16 GB/s · virtual"
    )
