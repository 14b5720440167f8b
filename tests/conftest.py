"""What holds for all tests."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def spool(tmp_path_factory):
    """Keep what workers spool away from the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("spool")
        patch.setenv("AFTERSLIP_SPOOL", str(folder))
        yield folder
