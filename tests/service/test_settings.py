"""Settings that are wrong are refused by the names under which they were given."""

import json
from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip_service import store_use
from afterslip_service.commands.run import _refuse_others
from afterslip_service.db.session import Database
from afterslip_service.errors import StoreBusyError
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


def test_the_default_database_is_beside_the_store_wherever_one_stands(
    tmp_path, monkeypatch
):
    for variable in ("AFTERSLIP_DATABASE", "AFTERSLIP_STORE"):
        monkeypatch.delenv(variable, raising=False)
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        found = read_settings(store=tmp_path / "data" / "store")
        assert found.database == str(tmp_path / "data" / "afterslip.sqlite")
    assert read_settings().database == str(Path.cwd() / "afterslip.sqlite")
    assert read_settings(database="x.sqlite").database == "x.sqlite"


def test_a_second_service_with_its_own_database_is_refused_on_a_store(tmp_path):
    one, other = (Database(str(tmp_path / name)) for name in ("a.sqlite", "b.sqlite"))

    def use(database):
        held = store_use.use(tmp_path, database)
        assert held is not None
        return held

    first, beside = use(one), use(one)
    with pytest.raises(StoreBusyError, match=r"with the database sqlite:.*a\.sqlite"):
        use(other)
    first.close()
    with pytest.raises(StoreBusyError):
        use(other)
    beside.close()
    use(other).close()


def test_a_run_refuses_the_folder_of_another_campaign(tmp_path):
    _refuse_others(tmp_path, "tohoku")
    (tmp_path / "campaign.json").write_text(json.dumps({"name": "chile"}))
    _refuse_others(tmp_path, "chile")
    with pytest.raises(SpecError, match="holds the results of the campaign 'chile'"):
        _refuse_others(tmp_path, "tohoku")
