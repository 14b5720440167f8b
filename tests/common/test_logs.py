"""Lines of a log that several threads write."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from afterslip_common.observe import logs


class Writes(io.StringIO):
    """A stream that keeps apart what each call has written."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)


@pytest.fixture
def stream():
    before = structlog.get_config()
    yield Writes()
    structlog.configure(**before)


@pytest.mark.parametrize("json_lines", [True, False])
def test_line_and_its_end_are_one_write(stream, json_lines):
    """Whatever another thread writes between two calls then stands between lines."""
    logs.configure(json=json_lines, level=logging.INFO, stream=stream)
    log = structlog.get_logger()
    log.info("attempt begins", group=3)
    log.info("attempt done")
    assert len(stream.parts) == 2
    assert all(part.count("\n") == 1 and part.endswith("\n") for part in stream.parts)
    if json_lines:
        assert json.loads(stream.parts[0])["group"] == 3
