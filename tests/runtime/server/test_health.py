"""``/health`` is red while a rank does not do what it should, and green again when the session goes on without it."""

from __future__ import annotations

import signal
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from openai import OpenAI

from tests.runtime.server.serving import KEY, QUESTION, serving

if TYPE_CHECKING:
    from tests.runtime.server.serving import Serving

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

RED_SECONDS, GREEN_SECONDS = 10, 240


def test_a_rank_that_stands_still_turns_it_red(demo_model):
    with (
        serving(demo_model, "--virtual-nodes", "2", "--split", "13,17") as server,
        OpenAI(base_url=server.address, api_key=KEY, max_retries=0) as client,
    ):
        before = answer(server, client)
        server.workers()[1].send_signal(signal.SIGSTOP)
        red = until(server, HTTPStatus.SERVICE_UNAVAILABLE, RED_SECONDS)
        assert "The worker on" in red["reason"], red
        assert until(server, HTTPStatus.OK, GREEN_SECONDS)["reason"] == ""
        assert answer(server, client) == before


def answer(server: Serving, client: OpenAI) -> str | None:
    done = client.chat.completions.create(
        model=server.model, messages=[{"role": "user", "content": QUESTION}], max_tokens=8, temperature=0
    )
    return done.choices[0].message.content


def until(server: Serving, status: HTTPStatus, within_seconds: float) -> dict[str, Any]:
    deadline = time.monotonic() + within_seconds
    while (reply := server.get("/health")).status_code != status:
        assert time.monotonic() < deadline, reply.text
        time.sleep(0.1)
    found: dict[str, Any] = reply.json()
    return found
