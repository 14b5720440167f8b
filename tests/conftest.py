"""What holds for all tests."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def spool(tmp_path_factory):
    """Keep what workers leave on their disk away from the user's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("spool")
        patch.setenv("AFTERSLIP_SPOOL", str(folder))
        patch.setenv("AFTERSLIP_SETUP", str(tmp_path_factory.mktemp("setup")))
        yield folder
