"""Programs that people use, as they come: the ``llm`` command line and ``litellm``, in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from runtime.server.clients import client_settings
from tests.runtime.server.serving import KEY

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(300)]

BIN = Path(__file__).parents[3] / ".tools" / "clients" / "bin"
QUESTION = "What is the capital of France?"

LITELLM = """
import json, sys
import litellm
address, key, model, question = sys.argv[1:]
options = dict(api_base=address, api_key=key, temperature=0, max_tokens=16, num_retries=0)
messages = [{"role": "user", "content": question}]
whole = litellm.completion(model=f"openai/{model}", messages=messages, **options)
stream = litellm.completion(model=f"openai/{model}", messages=messages, stream=True, **options)
streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
options["api_base"] = address.removesuffix("/v1")
message = litellm.completion(model=f"anthropic/{model}", messages=messages, **options)
errors = []
for broken in ({"temperature": 9}, {"model": "openai/another"}, {"api_key": "wrong"}):
    try:
        changed = {**options, "api_base": address, **broken}
        litellm.completion(**{"model": f"openai/{model}", "messages": messages, **changed})
    except Exception as error:
        errors.append(type(error).__name__)
print(json.dumps([whole.choices[0].message.content, streamed, message.choices[0].message.content, errors]))
"""


def run(*command: str, **environment: str) -> str:
    assert BIN.is_dir(), "run `sh packaging/bootstrap.sh clients` first, as `make matrix` does"
    done = subprocess.run(
        [BIN / command[0], *command[1:]],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["--no-stream", "--no-log"])
def test_llm(server, tmp_path, how):
    found = {each.program: each.text for each in client_settings(server.address, server.model, KEY)}
    (tmp_path / "extra-openai-models.yaml").write_text(found["llm"])
    run("llm", "keys", "set", "pomona", "--value", KEY, LLM_USER_PATH=str(tmp_path))
    options = ["-m", "pomona", "-o", "temperature", "0", "-o", "max_tokens", "16"]
    assert "Paris" in run("llm", "prompt", *options, how, QUESTION, LLM_USER_PATH=str(tmp_path))


def test_litellm(server):
    said = json.loads(run("python", "-c", LITELLM, server.address, KEY, server.model, QUESTION).splitlines()[-1])
    whole, streamed, message, errors = said
    assert "Paris" in whole
    assert whole == streamed == message
    assert errors == ["BadRequestError", "NotFoundError", "AuthenticationError"]
