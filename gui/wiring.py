"""Joins what the window wants with who can do it: the bridge and the errands that go over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.bench.errands import BenchErrands
from gui.logs.errands import LogErrands

if TYPE_CHECKING:
    from gui.bridge import Bridge
    from gui.models.bridge import ModelBridge
    from gui.window import Window


def connect(window: Window, bridge: Bridge) -> None:
    """Join what the window wants with who can do it."""
    bridge.nodes_changed.connect(window.show_nodes)
    bridge.links_changed.connect(window.store.set_links)
    bridge.unpaired_changed.connect(window.show_unpaired)
    bridge.pairing_over.connect(window.trust.pairing_over)
    bridge.code_shown.connect(window.trust.code_shown)
    window.trust.pair_wanted.connect(bridge.pair)
    window.trust.remove_wanted.connect(bridge.remove_node)
    window.trust.code_wanted.connect(bridge.show_code)
    window.trust.code_unwanted.connect(bridge.hide_code)
    window.trust.address_wanted.connect(bridge.add_address)
    bridge.network_checked.connect(window.trust.network_checked)
    bridge.sharing_told.connect(window.trust.sharing_told)
    window.trust.network_wanted.connect(bridge.check_network)
    window.trust.sharing_wanted.connect(bridge.tell_sharing)
    window.trust.share_wanted.connect(bridge.share)
    window.memory.cap_wanted.connect(bridge.set_memory_cap)
    bridge.model_reading.connect(window.welcome.show_reading)
    window.models.model_wanted.connect(bridge.choose_model)
    connect_models(window, bridge.models)
    connect_settings(window, bridge)
    bridge.layout_read.connect(window.show_layout)
    bridge.session_found.connect(window.adopt_session)
    bridge.session_message.connect(window.receive)
    bridge.checks_read.connect(window.show_checks)
    bridge.check_done.connect(window.show_check_result)
    bridge.trouble.connect(window.show_trouble)
    window.session_wanted.connect(bridge.start_session)
    window.resplit_wanted.connect(bridge.resplit)
    window.leave_wanted.connect(bridge.leave_session)
    window.stop_wanted.connect(bridge.stop_session)
    window.check_wanted.connect(bridge.check)
    window.check_cancel_wanted.connect(bridge.cancel_check)
    window.asked.connect(bridge.ask)
    window.cancel_wanted.connect(bridge.cancel)
    BenchErrands(window.benching, bridge)
    LogErrands(window.logs, bridge)


def connect_models(window: Window, models: ModelBridge) -> None:
    """The same for what concerns models."""
    pane = window.models_pane
    models.catalogue_read.connect(window.models.show_models)
    models.catalogue_read.connect(pane.show_catalogue)
    models.search_over.connect(pane.show_found)
    models.described.connect(pane.show_description)
    models.fetches_changed.connect(window.models_desk.show_fetches)
    models.opened.connect(window.models_desk.show_opened)
    window.models.models_wanted.connect(models.refresh)
    window.models_desk.fetch_wanted.connect(models.fetch_plan)
    pane.search_wanted.connect(models.search)
    pane.describe_wanted.connect(models.describe)
    pane.mark_wanted.connect(models.mark)
    pane.keep_wanted.connect(models.fetch_full)
    pane.delete_wanted.connect(models.remove)
    pane.pause_wanted.connect(models.pause)
    pane.resume_wanted.connect(models.resume)
    pane.end_wanted.connect(models.give_up)


def connect_settings(window: Window, bridge: Bridge) -> None:
    """The same for settings."""
    settings = window.settings
    bridge.settings.preferences = settings.preferences  # as the window remembered them, before the loop runs
    bridge.settings.keeping_told.connect(settings.show_keeping)
    bridge.settings.key_told.connect(settings.show_key)
    bridge.sharing_told.connect(settings.show_sharing)
    settings.preferences_changed.connect(bridge.settings.set_preferences)
    settings.keeping_wanted.connect(bridge.settings.tell_keeping)
    settings.folder_wanted.connect(bridge.settings.choose_folder)
    settings.token_wanted.connect(bridge.settings.keep_token)
    settings.key_wanted.connect(bridge.settings.tell_key)
    settings.new_key_wanted.connect(bridge.settings.renew_key)
