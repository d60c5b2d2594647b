"""Requests that compute something: one at a time per worker, with a bounded queue and a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import Request
from starlette.exceptions import HTTPException

MAX_PENDING = 64  # requests that a worker computes or holds in its queue
MAX_CACHE_BYTES = 2**26


def busy() -> HTTPException:
    return HTTPException(503, "The server is busy; try again later.", {"retry-after": "1"})


class Worker:
    """Runs one function at a time in a thread; requests wait for their turn in a bounded queue."""

    def __init__(self) -> None:
        self.turn, self.pending = asyncio.Lock(), 0

    async def run(self, request: Request, function: Callable[[], bytes]) -> bytes:
        """Run a function, unless the queue is full or the client has gone by then."""
        if self.pending >= MAX_PENDING:
            raise busy()
        self.pending += 1
        try:
            async with self.turn:
                if await request.is_disconnected():
                    raise HTTPException(408, "The client has disconnected.")
                return await asyncio.to_thread(function)
        finally:
            self.pending -= 1


class AnswerCache:
    """The most recently used answers, bounded by the total size of requests and answers."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.max_bytes, self.size = max_bytes, 0
        self.answers: dict[bytes, bytes] = {}  # least recently used first

    def get(self, key: bytes) -> bytes | None:
        answer = self.answers.pop(key, None)
        if answer is not None:
            self.answers[key] = answer
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        if key not in self.answers:
            self.answers[key] = answer
            self.size += len(key) + len(answer)
        while self.size > self.max_bytes:
            oldest = next(iter(self.answers))
            self.size -= len(oldest) + len(self.answers.pop(oldest))
