"""The states of the window without a session that are rendered, and the list of all states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discovery.local_network import Verdict
from gui import model_samples, samples
from gui import model_scenes as of_models
from gui import session_scenes as of_session
from gui.formatting import GIB
from gui.preferences import Preferences
from gui.session_scenes import demo, macs, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.window import Window


def welcome(window: Window) -> None:
    """No model is chosen; some are on this machine."""
    window.models.show_models(model_samples.catalogue())
    window.show_nodes(samples.macs())


def empty(window: Window) -> None:
    """The model is read, no node is in reach."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(())


def memory_cap(window: Window) -> None:
    """How much of a MacBook's memory Pomona may use, and what its card makes of that."""
    macs(window)
    window.show_nodes(samples.capped_macs())
    window.memory.open("macbook-pro")


def nearby(window: Window) -> None:
    """Machines that are not paired, and the dialog that asks for a code."""
    macs(window)
    window.show_unpaired(samples.unpaired("Mia’s Mac mini", "Studio in the attic", "Old MacBook of the whole office"))
    window.trust.open_pairing(samples.unpaired("Mia’s Mac mini")[0])
    dialog = window.trust.pairing
    assert dialog is not None
    dialog.field.setText("123456")
    dialog.failed("The code is wrong, or another machine answers in the name of Mia’s Mac mini; look at it again.")


def code(window: Window) -> None:
    """This machine shows its code."""
    from runtime.agent.trust_messages import ShownCode

    demo(window)
    window.trust.open_code()
    window.trust.code_shown(ShownCode("048213", 104.0), "")


def address(window: Window) -> None:
    """An address that is none."""
    empty(window)
    window.trust.open_address()
    dialog = window.trust.address
    assert dialog is not None
    dialog.field.setText("192.168.1.300")
    dialog.add.click()


def dragged(window: Window) -> None:
    """A boundary under the mouse, and a node that is left out."""
    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest

    demo(window)
    settle(window)
    handle = window.editor.handles[1]
    middle = QPoint(handle.width() // 2, handle.height() // 2)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(handle, middle + QPoint(-500, 0))


def over(window: Window) -> None:
    """One Mac lacks memory, which keeps Start from starting; a boundary has the keyboard."""
    macs(window)
    window.store.move_boundary(0, 26)
    window.editor.handles[2].setFocus()


def verified(window: Window) -> None:
    """A split that was checked against the whole model."""
    from runtime.check.result import CheckResult
    from runtime.check.versions import versions

    demo(window)
    split = window.store.split.counts
    found = CheckResult(samples.SMALL_MODEL.name, split, "pipeline", versions(), True, 0.0, 96, 16)
    window.show_checks({("pipeline", split): found})


def fastest(window: Window) -> None:
    """The fastest chat leaves the slow node out; it can be put back in."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    window.store.choose_goal("chat")


def tensor(window: Window) -> None:
    """Tensor mode."""
    demo(window)
    window.store.set_mode("tensor")


def tensor_refused(window: Window) -> None:
    """Tensor mode over a number of nodes that cannot share the heads."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.macs())
    window.store.set_mode("tensor")


def group_offered(window: Window) -> None:
    """The fastest chat, and the group that would be faster still."""
    nodes, links = samples.like_nodes()
    window.show_layout(samples.of_layers(61, int(1.1 * GIB)))
    window.show_nodes(nodes)
    window.store.set_links(links)
    window.store.choose_goal("chat")


def grouped(window: Window) -> None:
    """Two Macs that are alike share the layers of a stage, because that is faster."""
    group_offered(window)
    window.store.take_offer()


def many(window: Window) -> None:
    """Sixteen nodes and two hundred layers."""
    window.show_layout(samples.of_layers(200, 2**30))
    window.show_nodes(samples.many_nodes(16))


def this_mac(window: Window) -> None:
    """The network's test found that macOS does not let Pomona speak."""
    macs(window)
    window.trust.open_this_mac()
    window.trust.network_checked(Verdict.PERMISSION_OFF)
    window.trust.sharing_told(True, "", "")


def about(window: Window) -> None:
    """What it is, and the way to the licences."""
    demo(window)
    window.show_about()


def settings_general(window: Window) -> None:
    """Appearance, losses, login."""
    macs(window)
    window.settings.open()
    window.settings.show_sharing(True, "", "")


def settings_models(window: Window) -> None:
    """How new models are arranged and where they are kept."""
    from pathlib import Path

    from runtime.cluster.model_desk import Keeping

    macs(window)
    window.settings.open_page("models")
    folder = Path("/Volumes/Fast Disk/Models for all of us")
    window.settings.show_keeping(
        Keeping(folder, False, 640 * GIB, "Pomona's folder, which only you can read", True), ""
    )


def settings_server(window: Window) -> None:
    """The API of a model that runs, open to the network."""
    of_session.running(window)
    window.settings.set_preferences(Preferences(reach="network"))
    window.settings.open_page("server")
    window.settings.show_key("pomona-key", "")


def small(window: Window) -> None:
    """The smallest window that is promised."""
    over(window)
    window.resize(1024, 700)


SCENES: tuple[Callable[[Window], None], ...] = (
    welcome,
    empty,
    demo,
    macs,
    memory_cap,
    nearby,
    code,
    address,
    dragged,
    over,
    verified,
    fastest,
    tensor,
    tensor_refused,
    of_session.loading,
    of_session.fetching,
    of_session.running,
    of_session.running_macs,
    of_session.stages,
    of_session.memory,
    of_session.edited,
    of_session.rebalancing,
    group_offered,
    grouped,
    of_session.changing,
    of_session.lost,
    of_session.went_on,
    of_session.failed,
    of_session.bench_empty,
    of_session.bench,
    of_session.bench_running,
    of_session.clients,
    of_session.logs,
    of_session.logs_enlarged,
    of_session.bench_small,
    of_session.logs_small,
    *of_models.SCENES,
    many,
    about,
    this_mac,
    settings_general,
    settings_models,
    settings_server,
    small,
)
