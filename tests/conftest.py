"""What holds for all tests."""

from __future__ import annotations

import faulthandler
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

_CRASHES = pytest.StashKey[list[str]]()
_LAST_WORDS = pytest.StashKey()


@pytest.fixture(autouse=True, scope="session")
def spool(tmp_path_factory):
    """Keep what workers leave on their disk away from the user's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("spool")
        patch.setenv("AFTERSLIP_SPOOL", str(folder))
        patch.setenv("AFTERSLIP_SETUP", str(tmp_path_factory.mktemp("setup")))
        yield folder


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Give each process that runs tests a file for its last words."""
    folder = node.config._tmp_path_factory.getbasetemp()
    node.workerinput["last_words"] = str(folder / f"{node.gateway.id}.last-words")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.stash[_CRASHES] = []
    if path := getattr(config, "workerinput", {}).get("last_words"):
        # open as long as the process lives
        config.stash[_LAST_WORDS] = Path(path).open("w")  # noqa: SIM115
        faulthandler.enable(config.stash[_LAST_WORDS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    if error:
        code = node.gateway._io.popen.wait(10)
        words = Path(node.workerinput["last_words"]).read_text()
        text = f"{node.gateway.id} ended with status {code}\n{words or 'no last words'}"
        node.config.stash[_CRASHES].append(text)


def pytest_terminal_summary(terminalreporter, config):
    """Say why processes crashed where the end of a long report is all that remains."""
    for text in config.stash[_CRASHES]:
        terminalreporter.section("crashed")
        terminalreporter.write_line(text)
