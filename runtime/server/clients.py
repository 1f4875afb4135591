"""Ready-made settings for programs that people use, to be shown beside the API's address. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

NO_KEY = "none"
"""Programs want a key even where none is needed."""
_TERMINAL = "a terminal"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What to write where."""

    program: str
    where: str
    """A file, or a terminal."""
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def client_settings(address: str, model: str, api_key: str = "") -> tuple[ClientSettings, ...]:
    """For an API at ``address`` (with its ``/v1``) that serves ``model``."""
    key = api_key or NO_KEY
    openai = (f"export OPENAI_BASE_URL={address}", f"export OPENAI_API_KEY={key}", f"# and {model} as the model")
    claude = (
        f"export ANTHROPIC_BASE_URL={address.removesuffix('/v1')}",
        f"export ANTHROPIC_AUTH_TOKEN={key}",
        f"export ANTHROPIC_MODEL={model}",
        f"export ANTHROPIC_DEFAULT_HAIKU_MODEL={model}",
        "export MAX_THINKING_TOKENS=0",
    )
    codex: tuple[str, ...] = (
        f'model = "{model}"',
        'model_provider = "pomona"',
        "",
        "[model_providers.pomona]",
        'name = "Pomona"',
        f'base_url = "{address}"',
        'wire_api = "responses"',
    )
    if api_key:  # it reads keys from the environment alone
        codex += ('env_key = "POMONA_API_KEY"', f"# and in a terminal: export POMONA_API_KEY={api_key}")
    keep_going = (
        "models:",
        f"  - name: {model}",
        "    provider: openai",
        f"    model: {model}",
        f"    apiBase: {address}",
        f"    apiKey: {key}",
    )
    aider = (f"aider --openai-api-base {address} --openai-api-key {key} --model openai/{model}",)
    llm: tuple[str, ...] = ("- model_id: pomona", f"  model_name: {model}", f"  api_base: {address}")
    if api_key:  # llm sends a key only under a name, and asks for one that is named
        llm += ("  api_key_name: pomona", f"# and in a terminal: llm keys set pomona --value {api_key}")
    question = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    curl = (
        f"curl {address}/chat/completions -H 'Authorization: Bearer {key}' \\",
        f"  -H 'Content-Type: application/json' -d '{question}'",
    )
    return (
        ClientSettings("OpenAI's packages, and most others", _TERMINAL, openai),
        ClientSettings("Claude Code", _TERMINAL, claude),
        ClientSettings("Codex", "~/.codex/config.toml", codex),
        ClientSettings("Continue", "~/.continue/config.yaml", keep_going),
        ClientSettings("aider", _TERMINAL, aider),
        ClientSettings("llm", "extra-openai-models.yaml, beside the file that `llm logs path` names", llm),
        ClientSettings("curl", _TERMINAL, curl),
    )
