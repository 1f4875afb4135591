"""What a person is given to copy."""

from __future__ import annotations

import json
import shlex
import tomllib

from runtime.server.clients import client_settings

ADDRESS = "http://127.0.0.1:52520/v1"


def test_settings_can_be_read_by_their_programs():
    found = {each.program: each.text for each in client_settings(ADDRESS, "owner/model-1", "secret")}
    codex = tomllib.loads(found["Codex"])
    provider = codex["model_providers"][codex["model_provider"]]
    assert provider["base_url"] == ADDRESS
    assert f"export {provider['env_key']}=secret" in found["Codex"]
    assert all("secret" in text for text in found.values())
    words = shlex.split(found["curl"])
    assert json.loads(words[-1])["model"] == "owner/model-1"
    assert "Authorization: Bearer secret" in words
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:52520\n" in found["Claude Code"]


def test_without_a_key_programs_get_one_that_means_nothing():
    assert all("secret" not in each.text for each in client_settings(ADDRESS, "model"))
    assert "OPENAI_API_KEY=none" in client_settings(ADDRESS, "model")[0].text
