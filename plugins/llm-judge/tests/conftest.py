"""A real endpoint that speaks the protocol; its "model" is a program with rules."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rlvr_plugin_llm_judge import LlmJudge

from rlvr_core.api import FinishReason, Verdict, VerifyBatch, VerifyRow

BLOCK = re.compile(r"⟦(\w+) (\w{8})⟧\n(.*?)\n⟦end of \1 \2⟧", re.S)


@dataclass(frozen=True)
class Asked:
    """One request, as the endpoint got it."""

    path: str
    headers: dict[str, str]
    body: dict
    number: int
    """From 1, over all requests of the endpoint."""

    @property
    def blocks(self) -> dict[str, str]:
        """What stands between fences."""
        return {name: text for name, _, text in BLOCK.findall(self.body["messages"][1]["content"])}

    @property
    def tag(self) -> str:
        return BLOCK.search(self.body["messages"][1]["content"])[2]

    @property
    def is_repetition(self) -> bool:
        """The reply before held no verdict."""
        return len(self.body["messages"]) == 4

    def verdict(self, **marks: object) -> str:
        return json.dumps({"tag": self.tag, **marks})


@dataclass
class Raw:
    """A response that a rule writes itself."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    parts: Iterator[bytes] | None = None
    """Sent one by one in place of `body`, the connection being closed after them."""


Rule = Callable[[Asked], "str | Raw"]


def honest(asked: Asked) -> str:
    """Call right what ends with the reference."""
    blocks = asked.blocks
    is_right = blocks["answer"].rstrip(" .").endswith(blocks.get("reference", "42"))
    return f"I compare the two.\n{asked.verdict(correct=is_right)}"


class Endpoint:
    """A server on this machine, and what it was asked."""

    def __init__(self, rule: Rule, model: str = "rules-1") -> None:
        self.rule, self.model = rule, model
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length).decode("utf-8"))
                self._send(endpoint.answer(self.path, dict(self.headers), body))

            def _send(self, raw: Raw) -> None:
                self.send_response(raw.status)
                for name, value in raw.headers.items():
                    self.send_header(name, value)
                if raw.parts is None:
                    self.send_header("Content-Length", str(len(raw.body)))
                else:
                    self.close_connection = True
                    self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for part in [raw.body] if raw.parts is None else raw.parts:
                        self.wfile.write(part)
                        self.wfile.flush()
                except OSError:
                    self.close_connection = True  # the other side had waited long enough

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *arguments: object) -> None:
                pass

        self.server = Server(("localhost", 0), Handler)
        self.url = f"http://localhost:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path: str, headers: dict[str, str], body: dict) -> Raw:
        with self._lock:
            asked = Asked(path, headers, body, len(self.asked) + 1)
            self.asked.append(asked)
        said = self.rule(asked)
        return said if isinstance(said, Raw) else self.raw(said)

    def raw(self, text: str | None, finish_reason: str = "stop") -> Raw:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        body = {"object": "chat.completion", "model": self.model, "choices": [choice]}
        return Raw(body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    def about(self, answer: str) -> list[Asked]:
        """Return the requests about an answer, so without those about canaries."""
        return [one for one in self.asked if one.blocks["answer"] == answer]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Endpoint]]:
    """Return a function that starts an endpoint; all of them end with the test."""
    running: list[Endpoint] = []

    def started(rule: Rule = honest, model: str = "rules-1") -> Endpoint:
        running.append(Endpoint(rule, model))
        return running[-1]

    yield started
    for one in running:
        one.close()


@pytest.fixture(scope="session")
def honest_rule() -> Rule:
    return honest


@pytest.fixture(scope="session")
def raw() -> type[Raw]:
    return Raw


def settings_for(*endpoints: Endpoint, **config: object) -> dict:
    judges = [{"base_url": one.url, "model": one.model} for one in endpoints]
    return {"judges": judges, "deadline_s": 5, **config}


@pytest.fixture(scope="session")
def settings() -> Callable[..., dict]:
    """Return a function that makes the config of a verifier with these endpoints as judges."""
    return settings_for


@pytest.fixture(scope="session")
def judge() -> Callable[..., Verdict]:
    """Return a function that judges one completion with a config."""

    def judged(
        completion: str,
        config: dict,
        ground_truth: dict | None = None,
        prompt: object = "What is 6 times 7?",
        finish_reason: FinishReason = FinishReason.STOP,
    ) -> Verdict:
        verifier = LlmJudge(LlmJudge.Config.model_validate(config), name="llm-judge")
        truth = {"reference": "42"} if ground_truth is None else ground_truth
        row = VerifyRow(
            id="row",
            prompt=prompt,
            completion=completion,
            ground_truth=LlmJudge.GroundTruth.model_validate(truth),
            finish_reason=finish_reason,
        )
        (verdict,) = verifier.rlvr_verify(VerifyBatch(rows=[row]))
        return verdict

    return judged
