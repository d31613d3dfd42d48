"""What a caller may do in a minute: each their own, and from nothing in the next one."""

from types import SimpleNamespace

import pytest

from accounts import throttling


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock: seconds that a test may set."""
    clock = SimpleNamespace(seconds=6_000.0)
    monkeypatch.setattr(throttling, "time", SimpleNamespace(time=lambda: clock.seconds))
    monkeypatch.setattr(throttling, "_counts", {})
    monkeypatch.setattr(throttling, "_minute", 100)
    return clock


def test_whoever_had_enough_may_go_on_in_the_next_minute(at: SimpleNamespace) -> None:
    assert [throttling.allow("alice", 2) for _ in range(3)] == [True, True, False]
    at.seconds += 59
    assert not throttling.allow("alice", 2)
    at.seconds += 1
    assert [throttling.allow("alice", 2) for _ in range(3)] == [True, True, False]


def test_nobody_waits_for_what_another_has_done(at: SimpleNamespace) -> None:
    assert [throttling.allow("alice", 1) for _ in range(2)] == [True, False]
    assert throttling.allow("bob", 1)
