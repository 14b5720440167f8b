"""Settings that are wrong are refused by the names under which they were given."""

import pytest

from afterslip.errors import SpecError
from afterslip_service.settings import read_settings


def test_a_wrong_option_is_named_with_its_value():
    with pytest.raises(SpecError) as caught:
        read_settings(port=99999)
    assert str(caught.value) == "--port = 99999: must be at most 65535"


def test_a_wrong_variable_of_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("AFTERSLIP_TICK", "soon")
    with pytest.raises(SpecError) as caught:
        read_settings()
    assert str(caught.value) == "AFTERSLIP_TICK = soon: must be a number"


def test_half_of_a_pair_is_refused(tmp_path):
    with pytest.raises(SpecError, match="belong together"):
        read_settings(tls_key=tmp_path / "key.pem")
