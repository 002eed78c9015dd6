"""What goes over the wire, and what becomes of an endpoint that fails."""

from __future__ import annotations

import json
import socket
import time

import pytest
from rlvr_plugin_llm_judge.chat import _made_client

from rlvr_core.api import FailureCategory, Message, Status

RIGHT = "It is 42."


def is_broken(verdict, *words):
    assert (verdict.status, verdict.score) == (Status.ERROR, None)
    assert verdict.failure is FailureCategory.BACKEND_UNAVAILABLE
    for word in words:
        assert word in verdict.diagnostics["message"]
    return True


def test_a_right_and_a_wrong_answer_are_told_apart(serve, settings, judge):
    config = settings(serve())
    assert judge(RIGHT, config).status is Status.PASSED
    wrong = judge("It is 43.", config)
    assert (wrong.status, wrong.score) == (Status.FAILED, 0.0)
    assert (wrong.failure.value, wrong.stage.value) == ("wrong_answer", "compare")
    assert wrong.diagnostics == {"criteria": {"correct": 0}}


def test_a_request_is_greedy_bounded_and_holds_no_key_unless_one_is_named(serve, settings, judge):
    one = serve()
    chat = (Message("system", "Be brief."), Message("user", "6 times 7?"))
    judge(RIGHT, settings(one), prompt=chat)
    [asked] = one.about(RIGHT)
    assert asked.path == "/v1/chat/completions"
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0, 512)
    assert asked.body["model"] == "rules-1"
    assert "Authorization" not in asked.headers
    assert asked.blocks["task"] == "system: Be brief.\n\nuser: 6 times 7?"


def test_a_key_goes_to_its_endpoint_alone_and_into_no_verdict(
    serve, settings, judge, raw, monkeypatch
):
    def refusing(asked):
        return raw(403, f"no {asked.headers.get('Authorization')}".encode())

    one, other = serve(refusing), serve()
    monkeypatch.setenv("RLVR_JUDGE_API_KEY_2", "s3cret")
    config = settings(one)
    config["judges"][0]["api_key_env"] = "RLVR_JUDGE_API_KEY_2"
    verdict = judge(RIGHT, config)
    assert is_broken(verdict, "refused", "403", "***")
    assert one.asked[0].headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in json.dumps(verdict.to_json())
    judge(RIGHT, settings(other))
    assert all("Authorization" not in asked.headers for asked in other.asked)


def test_a_missing_key_is_named(serve, settings, judge, monkeypatch):
    monkeypatch.delenv("RLVR_JUDGE_API_KEY", raising=False)
    config = settings(serve())
    config["judges"][0]["api_key_env"] = "RLVR_JUDGE_API_KEY"
    assert is_broken(judge(RIGHT, config), "RLVR_JUDGE_API_KEY is not set")


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_a_busy_endpoint_is_asked_again(serve, settings, judge, raw, honest_rule, status):
    failures = {}

    def busy(asked):
        answer = asked.blocks["answer"]
        failures[answer] = failures.get(answer, 0) + 1
        if failures[answer] <= 2:
            return raw(status, b"busy", {"Retry-After": "0"})
        return honest_rule(asked)

    one = serve(busy)
    assert judge(RIGHT, settings(one)).status is Status.PASSED
    assert len(one.about(RIGHT)) == 3


def test_an_endpoint_that_stays_broken_is_given_up_after_four_attempts(serve, settings, judge, raw):
    one = serve(lambda asked: raw(500, b"out of memory"))
    assert is_broken(judge(RIGHT, settings(one)), "status 500", "out of memory")
    assert len(one.about(RIGHT)) == 4


def test_a_long_wait_that_was_asked_for_is_not_begun_past_the_deadline(serve, settings, judge, raw):
    one = serve(lambda asked: raw(429, b"", {"Retry-After": "3600"}))
    start = time.monotonic()
    assert is_broken(judge(RIGHT, settings(one)), "status 429")
    assert time.monotonic() - start < 4
    assert len(one.about(RIGHT)) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_repeated_and_no_redirect_is_followed(serve, settings, judge, raw, status):
    target = serve()
    one = serve(lambda asked: raw(status, b"no", {"Location": f"{target.url}/chat/completions"}))
    assert is_broken(judge(RIGHT, settings(one)), f"status {status}")
    assert len(one.about(RIGHT)) == 1
    assert target.asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"[]", b"null", b"\xff\xfe", b'{"choices": []}', b'{"choices": {}}',
        b'{"choices": [{"message": {"content": "{',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": [1]}}]}', b'{"choices": [{"message": "x"}]}',
        b'{"error": "model not loaded"}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_body_that_is_not_the_protocol_is_no_verdict(serve, settings, judge, raw, body):
    one = serve(lambda asked: raw(200, body))
    assert is_broken(judge(RIGHT, settings(one, deadline_s=0.5)), "no answer from")


def test_a_body_without_end_is_cut_off(serve, settings, judge, raw):
    def endless(asked):
        return raw(parts=(b" " * 65_536 for _ in range(1_000)))

    assert is_broken(judge(RIGHT, settings(serve(endless), deadline_s=5)), "more than 2,000,000")


def test_a_slow_endpoint_is_given_up_at_the_deadline(serve, settings, judge, honest_rule):
    def slow(asked):
        time.sleep(3)
        return honest_rule(asked)

    start = time.monotonic()
    assert is_broken(judge(RIGHT, settings(serve(slow), deadline_s=0.4)), "Timeout")
    assert time.monotonic() - start < 2


def test_an_endpoint_that_sends_byte_by_byte_is_given_up_too(serve, settings, judge, raw):
    def dripping(asked):
        def parts():
            for _ in range(40):
                yield b" "
                time.sleep(0.1)

        return raw(parts=parts())

    start = time.monotonic()
    assert is_broken(judge(RIGHT, settings(serve(dripping), deadline_s=0.6)), "the deadline passed")
    assert time.monotonic() - start < 2.5


def test_nobody_there_is_an_error(judge):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        url = f"http://localhost:{free.getsockname()[1]}/v1"
        config = {"judges": [{"base_url": url, "model": "m"}], "deadline_s": 1}
        assert is_broken(judge(RIGHT, config), "ConnectError")


def test_proxies_of_the_environment_get_nothing(serve, settings, judge, monkeypatch):
    proxy = serve()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
    _made_client.cache_clear()
    assert judge(RIGHT, settings(serve())).status is Status.PASSED
    assert proxy.asked == []
