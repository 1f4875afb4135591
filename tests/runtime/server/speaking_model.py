"""The demo's weights as a model that knows tools and may think: another chat template, two unused tokens renamed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "speaking-model"

# The form of Hermes and Qwen: a call is JSON between two marks. mlx-lm knows it by "tool_call.name".
TEMPLATE = """
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}Tools, to be called as <tool_call>{"name": NAME, "arguments": {}}</tool_call>:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>{{ message.content }}</tool_response><|im_end|>
{% elif message.role != 'system' %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}{% set tool_call = call.function %}
<tool_call>{"name": "{{ tool_call.name }}", "arguments": {{ tool_call.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if thinks or reasoning_effort is defined %}<think>
{% endif %}{% endif %}"""
RENAMED = {"<repo_name>": "<think>", "<file_sep>": "</think>"}


def make(demo: Path, folder: Path) -> Path:
    """Write it into ``folder``. ``chat_template_kwargs={"thinks": True}`` has it think."""
    shutil.copytree(demo, folder)
    tokenizer = (folder / "tokenizer.json").read_text(encoding="utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    for old, new in RENAMED.items():
        assert json.dumps(old) in tokenizer
        tokenizer = tokenizer.replace(json.dumps(old), json.dumps(new))
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    config["chat_template"] = TEMPLATE.lstrip("\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
