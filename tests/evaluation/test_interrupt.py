"""Ctrl-C that somebody inside has taken still ends a measurement."""

import os
import signal
import threading

import pytest

from vhe.evaluation.interrupt import raise_on_sigint


@pytest.fixture
def swallowing():
    """Ctrl-C as training takes it: noted, not raised."""
    taken = []
    before = signal.signal(signal.SIGINT, lambda number, frame: taken.append(number))
    yield taken
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_was_swallowed_is_raised_at_the_end(swallowing) -> None:
    ended = []

    def measure() -> None:
        with raise_on_sigint():
            os.kill(os.getpid(), signal.SIGINT)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        measure()
    assert ended
    assert swallowing == [signal.SIGINT]


def test_nothing_happens_without_one(swallowing) -> None:
    with raise_on_sigint():
        pass
    os.kill(os.getpid(), signal.SIGINT)  # nobody listens any more
    with raise_on_sigint():
        pass
    assert swallowing == [signal.SIGINT]


def test_errors_inside_come_out_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), raise_on_sigint():
        1 / 0  # noqa: B018


def test_a_thread_may_measure_too() -> None:
    done = []

    def measure() -> None:
        with raise_on_sigint():
            done.append(True)

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    assert done
