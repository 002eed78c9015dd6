"""One request to an OpenAI-compatible endpoint: retries, a deadline, and a key kept close."""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import httpx2
from pydantic import Field, field_validator

from rlvr_core.api import Strict, read_json
from rlvr_plugin_llm_judge.prompt import Messages

KeyName: TypeAlias = Literal["RLVR_JUDGE_API_KEY", "RLVR_JUDGE_API_KEY_2", "RLVR_JUDGE_API_KEY_3"]
KEY_NAMES: tuple[KeyName, ...] = get_args(KeyName)
"""Environment variables that may hold a key; no others reach the workers."""

MAX_ATTEMPTS = 4
BACKOFF_S = 0.25
"""Wait after the first attempt, on average; doubled after each further one."""
MAX_REPLY_BYTES = 2_000_000

_SHOWN_CHARACTERS = 200
_NOT_NOW = frozenset({408, 409, 425, 429})
_making_a_client = threading.Lock()


class Endpoint(Strict):
    """Where a judge is asked."""

    base_url: str = Field(
        pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$",
        description="Up to and with the version, such as https://judge.example/v1.",
    )
    model: str = Field(min_length=1, max_length=200, description="Its name at the endpoint.")
    api_key_env: KeyName | None = Field(
        default=None,
        description="Name of the environment variable that holds the key for this endpoint. "
        "Without it none is sent.",
    )
    max_tokens: int = Field(
        default=512, ge=16, le=32_768, description="Longest reply, reasoning included."
    )

    @field_validator("base_url")
    @classmethod
    def _without_slash(cls, url: str) -> str:
        return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answered."""

    text: str
    model: str
    """As the endpoint calls the model that answered; empty when it does not say."""
    is_cut: bool
    """It reached `max_tokens`."""


class UnansweredError(Exception):
    """There is no verdict: the endpoint or the judge broke. Says nothing about the answer."""


class _NotNow(Exception):
    """An attempt failed in a way that the next may not."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


def complete(endpoint: Endpoint, messages: Messages, deadline_s: float) -> Reply:
    """Return the endpoint's reply to a conversation, sampled at temperature 0.

    Busy and failing endpoints (408, 409, 425, 429, 5xx, broken connections, bodies that are not
    the protocol's) are asked again, up to `MAX_ATTEMPTS` times, as long as the deadline allows.

    Args:
        endpoint: Where.
        messages: The conversation.
        deadline_s: By `time.monotonic`.

    Raises:
        UnansweredError: No reply came.
    """
    last = "the deadline had passed before"
    for attempt in range(MAX_ATTEMPTS):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            break
        try:
            return _reply(_requested(endpoint, messages, left_s, deadline_s))
        except _NotNow as problem:
            last = str(problem)
            wait_s = max(problem.wait_s, BACKOFF_S * 2**attempt * random.uniform(0.5, 1.5))
            if attempt == MAX_ATTEMPTS - 1 or time.monotonic() + wait_s >= deadline_s:
                break
            time.sleep(wait_s)
    raise UnansweredError(f"no answer from {endpoint.base_url}: {last}")


def _requested(endpoint: Endpoint, messages: Messages, left_s: float, deadline_s: float) -> bytes:
    """Return the body of a successful response."""
    body = {
        "model": endpoint.model,
        "messages": messages,
        "temperature": 0,
        "max_tokens": endpoint.max_tokens,
    }
    key = _key(endpoint)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"{endpoint.base_url}/chat/completions"
    try:
        with _client().stream("POST", url, json=body, headers=headers, timeout=left_s) as response:
            content = bytearray()
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_REPLY_BYTES:
                    raise _NotNow(f"it sent more than {MAX_REPLY_BYTES:,} bytes")
                if time.monotonic() >= deadline_s:
                    raise _NotNow("the deadline passed while it was sending")
            status, retry_after = response.status_code, response.headers.get("Retry-After", "")
    except httpx2.HTTPError as error:
        raise _NotNow(f"{type(error).__name__}: {error}") from None
    if status == 200:
        return bytes(content)
    shown = content[:_SHOWN_CHARACTERS].decode("utf-8", "replace")
    said = f"status {status}: {shown.replace(key, '***') if key else shown}"
    if status in _NOT_NOW or status >= 500:
        raise _NotNow(said, float(retry_after) if retry_after.isdecimal() else 0.0)
    raise UnansweredError(f"{endpoint.base_url} refused: {said}")


def _reply(content: bytes) -> Reply:
    try:
        body = read_json(content.decode("utf-8"), duplicate_keys="last")
        choice = body["choices"][0]
        text: Any = choice["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        raise _NotNow(f"it did not answer in the protocol ({type(error).__name__})") from None
    if not isinstance(text, str):
        raise _NotNow("its answer holds no text")
    model = body.get("model")
    return Reply(
        text, model if isinstance(model, str) else "", choice.get("finish_reason") == "length"
    )


def _key(endpoint: Endpoint) -> str:
    if endpoint.api_key_env is None:
        return ""
    key = os.environ.get(endpoint.api_key_env, "").strip()
    if not key:
        raise UnansweredError(f"the environment variable {endpoint.api_key_env} is not set")
    return key


def _client() -> httpx2.Client:
    with _making_a_client:
        return _made_client()


@lru_cache(maxsize=1)
def _made_client() -> httpx2.Client:
    """Return the connections that all threads of this process share.

    The environment is not asked for proxies and passwords, and no redirect is followed: a key goes
    where the stack says, and nowhere else.
    """
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx2.Client(trust_env=False, follow_redirects=False, limits=limits)
