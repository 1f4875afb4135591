"""Whatever comes: every decoder takes it or refuses it as it says it does, soon and without growing.

``FUZZ_INPUTS`` in the environment says how many inputs each decoder gets; `make faults` gives 20,000.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings

from discovery.address import AddressBook
from discovery.announcement import BadAnnouncement, decode_announcement, encode_txt, instance_name
from discovery.pairing import MESSAGE_BYTES, PROOF_BYTES
from discovery.trust import TrustStore
from gui import memory
from gui.chat.book import Conversation
from gui.chat.conversation import Exchange
from resources.calibration import CALIBRATION_NAME, StoredCalibrations
from runtime.agent import trust_messages
from runtime.agent.link_messages import MeasureLinks
from runtime.agent.messages import (
    RankReport,
    StartRank,
    decode_from_agent,
    decode_from_controller,
    encode,
)
from runtime.agent.models.messages import FetchOrder, ModelOrder
from runtime.cluster.link_book import LinkBook
from runtime.engine import frames
from runtime.engine.hop import Address
from runtime.engine.orders import Connect, Launch, Listening, StepStatistics, decode_order, decode_report, encode_line
from runtime.errors import PomonaError
from runtime.models.config import CONFIG_NAME, parse_config, parse_settings
from runtime.models.layout import layout_of
from runtime.models.manifest import Manifest, decode_manifest
from runtime.models.safetensors_header import LENGTH_BYTES, header_length, parse_header
from runtime.models.weight_files import parse_index
from tests.inputs import changed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT, LONG = 20, int(os.environ.get("FUZZ_INPUTS", "20000"))
SECONDS = 5.0
"""No single input may take so long, on however slow a machine."""
GROWTH_BYTES = 64 << 20
BATCH = 1000
"""Hypothesis remembers what it has drawn in one go, which is no growth of the decoder."""

LAUNCH = Launch("job", bytes(32), "127.0.0.1", "/models/a", 0, 0, 10, 0, 3, 0, 1)
NODE_ID = "0123456789abcdef" * 4
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 16,
    "vocab_size": 32,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 64,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "quantization": {"group_size": 64, "bits": 4},
}
HEADER = {
    "model.embed_tokens.weight": {"dtype": "F16", "shape": [4, 2], "data_offsets": [0, 16]},
    "model.layers.0.mlp.up_proj.weight": {"dtype": "F16", "shape": [2, 2], "data_offsets": [16, 24]},
    "model.layers.1.mlp.up_proj.weight": {"dtype": "F16", "shape": [2, 2], "data_offsets": [24, 32]},
}


def header_of(content: bytes) -> object:
    length = header_length(content[:LENGTH_BYTES], len(content), "x.safetensors")
    return parse_header(content[LENGTH_BYTES : LENGTH_BYTES + length], len(content), "x.safetensors")


def layout_for(content: bytes) -> object:
    text = json.dumps(HEADER).encode()
    return layout_of("model", parse_settings(content, CONFIG_NAME), parse_header(text, 40 + len(text), "x"))


def announced(content: bytes) -> object:
    """Key and value pairs, as they stand in a TXT record."""
    pairs = dict(pair.split(b"=", 1) for pair in content.split(b"\n") if b"=" in pair)
    return decode_announcement(instance_name(NODE_ID), pairs, ["192.0.2.1"])


def file_in(folder: Path, name: str, read: Callable[[Path], object], content: bytes) -> object:
    (folder / name).write_bytes(content)
    return read(folder)


@dataclass(frozen=True)
class Decoder:
    """``refusals`` is all that it may raise."""

    decode: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    good: bytes


def as_text(decode: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda content: decode(content.decode(errors="replace"))


def decoders(folder: Path) -> dict[str, Decoder]:
    packed_header = json.dumps(HEADER).encode()
    txt = b"\n".join(
        f"{key}={value}".encode() for key, value in encode_txt(NODE_ID, "Studio", "0123abcd", 47665).items()
    )
    start = encode(StartRank(LAUNCH)).encode()
    order = ModelOrder("a", "b/a", "main", "/models/a")
    malformed = (msgspec.DecodeError,)
    return {
        "orders to a worker": Decoder(
            decode_order, malformed, encode_line(Connect(Address("::1", 5), (Address("::1", 6),)))
        ),
        "launch of a worker": Decoder(decode_order, malformed, encode_line(LAUNCH)),
        "reports of a worker": Decoder(decode_report, malformed, encode_line(Listening(5, 6))),
        "statistics of a worker": Decoder(decode_report, malformed, encode_line(StepStatistics(1, 2, 0.5, 3, 4))),
        "steps of a hop": Decoder(
            frames.decode, malformed, frames.encode(frames.Step(1, (2,), (3,), (4,), sample=True))
        ),
        "requests of a hop": Decoder(
            frames.decode, malformed, frames.encode(frames.Submit(0, (1, 2), 5, (2,), frames.Sampling()))
        ),
        "job, from the controller": Decoder(as_text(decode_from_controller), malformed, start),
        "job, from the agent": Decoder(
            as_text(decode_from_agent), malformed, encode(RankReport(0, StepStatistics(1, 2, 0.5, 3, 4))).encode()
        ),
        "route: pair": Decoder(
            lambda content: trust_messages.decode(content, trust_messages.PairAnswer),
            (ValueError,),
            msgspec.json.encode(trust_messages.PairAnswer("0" * 32, bytes(MESSAGE_BYTES), bytes(PROOF_BYTES))),
        ),
        "route: peers": Decoder(
            lambda content: trust_messages.decode(content, trust_messages.Peers),
            (ValueError,),
            msgspec.json.encode(trust_messages.Peers((trust_messages.Peer("pem", "Studio"),))),
        ),
        "route: links": Decoder(
            lambda content: trust_messages.decode(content, MeasureLinks),
            (ValueError,),
            msgspec.json.encode(MeasureLinks(NODE_ID, 5, (), ())),
        ),
        "route: held": Decoder(
            lambda content: trust_messages.decode(content, ModelOrder), (ValueError,), msgspec.json.encode(order)
        ),
        "route: fetch": Decoder(
            lambda content: trust_messages.decode(content, FetchOrder),
            (ValueError,),
            msgspec.json.encode(FetchOrder(order, ("layer-0",), ())),
        ),
        "mDNS record": Decoder(announced, (BadAnnouncement,), txt),
        "safetensors header": Decoder(
            header_of, (PomonaError,), len(packed_header).to_bytes(8, "little") + packed_header + bytes(32)
        ),
        "model index": Decoder(
            lambda content: parse_index(content, "model"),
            (PomonaError,),
            json.dumps({"weight_map": {"a": "model-1.safetensors"}}).encode(),
        ),
        "config.json": Decoder(
            lambda content: parse_config(content, CONFIG_NAME), (PomonaError,), json.dumps(CONFIG).encode()
        ),
        "config.json, layout": Decoder(layout_for, (PomonaError,), json.dumps(CONFIG).encode()),
        "manifest of a peer": Decoder(
            lambda content: decode_manifest(content, "Studio"),
            (PomonaError,),
            msgspec.json.encode(Manifest("a", "b/a", "0" * 40, json.dumps(CONFIG), (), ())),
        ),
        "trust.json": Decoder(
            partial(file_in, folder, "trust.json", lambda path: TrustStore(path).nodes), (), b'{"nodes":[]}'
        ),
        "addresses.json": Decoder(
            partial(file_in, folder, "addresses.json", lambda path: AddressBook(path).all()),
            (),
            b'{"addresses":[{"host":"192.0.2.1","port":5}]}',
        ),
        "links.json": Decoder(
            partial(file_in, folder, "links.json", lambda path: LinkBook(path).get("a", "b")), (), b'{"pairs":[]}'
        ),
        "window.json": Decoder(
            partial(file_in, folder, memory.FILE_NAME, memory.load),
            (),
            msgspec.json.encode(memory.Kept(chats=(Conversation((Exchange("a", "Name a river"),)),))),
        ),
        "calibration.json": Decoder(
            partial(file_in, folder, CALIBRATION_NAME, lambda path: StoredCalibrations(path).of_version("1")), (), b"{}"
        ),
    }


def run(decoder: Decoder, count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=count == SHORT,
        suppress_health_check=list(HealthCheck),
    )
    @given(content=changed(decoder.good))
    def take_or_refuse(content: bytes) -> None:
        began = time.monotonic()
        with contextlib.suppress(*decoder.refusals):
            decoder.decode(content)
        assert time.monotonic() - began < SECONDS

    decoder.decode(decoder.good)
    take_or_refuse()


def test_whatever_comes_is_taken_or_refused(tmp_path):
    for name, decoder in decoders(tmp_path).items():
        try:
            run(decoder, SHORT)
        except BaseException as error:
            error.add_note(f"the decoder of {name}")
            raise


@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_much_of_whatever_comes(tmp_path, note):
    for name, decoder in decoders(tmp_path).items():
        run(decoder, SHORT)
        process = psutil.Process()
        before = process.memory_info().rss
        began = time.monotonic()
        for _ in range(0, LONG, BATCH):
            run(decoder, min(BATCH, LONG))
        gc.collect()
        grown = process.memory_info().rss - before
        note("fuzzing", name, f"{LONG} inputs", None, f"{time.monotonic() - began:.0f} s, {grown / 1e6:+.0f} MB")
        assert grown < GROWTH_BYTES
