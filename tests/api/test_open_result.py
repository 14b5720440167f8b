"""What is no result is named in plain words, in Python and by the verbs."""

import io

import pytest
import xarray as xr
from example_result import example_result

from afterslip import AfterslipError, open_result
from afterslip.cli import main as command

VERBS = ("reproduce", "test-resolution")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        with pytest.raises(SystemExit) as ended:
            command.main(list(args))
        return ended.value.code or 0, capsys.readouterr().err

    return run


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "nix.nc"
    with pytest.raises(FileNotFoundError) as error:
        open_result(path)
    assert str(error.value) == f"[Errno 2] No such file or directory: '{path}'"


def test_a_folder_is_named(tmp_path):
    with pytest.raises(IsADirectoryError) as error:
        open_result(tmp_path)
    assert str(error.value) == f"[Errno 21] Is a directory: '{tmp_path}'"


@pytest.mark.parametrize("content", [b"", b"a text, of more than eight bytes", "cut"])
def test_what_is_no_netcdf_is_an_error_of_ours(tmp_path, content):
    path = tmp_path / "a.nc"
    if content == "cut":
        example_result().to_netcdf(path, engine="h5netcdf")
        content = path.read_bytes()[:5000]
    path.write_bytes(content)
    with pytest.raises(AfterslipError, match=r"a\.nc is no NetCDF file, or a damaged"):
        open_result(str(path))
    with pytest.raises(AfterslipError, match="the result is no NetCDF file"):
        open_result(io.BytesIO(content))


def test_netcdf_of_something_else_stays_a_value_error(tmp_path):
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="not an inversion's result"):
        open_result(tmp_path / "a.nc")


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_stands_for_the_result_in_it(run, tmp_path, verb):
    folder = tmp_path / "result"
    folder.mkdir()
    assert run(verb, "result") == (
        2, "afterslip: result/result.nc: there is no such file\n"
    )  # fmt: skip
    example_result().to_netcdf(folder / "result.nc", engine="h5netcdf")
    of_folder, of_file = run(verb, "result"), run(verb, "result/result.nc")
    # the example has no record of a request and no matrix: both are read as far
    assert of_folder == of_file
    assert "there is no such file" not in of_folder[1]
    assert "H5" not in of_folder[1]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_that_a_file_is_no_result(run, tmp_path, verb):
    (tmp_path / "notes.txt").write_text("not a result")
    code, err = run(verb, "notes.txt")
    assert code == 2
    assert err.startswith("afterslip: notes.txt: is no result of an inversion")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    code, err = run(verb, "a.nc")
    assert code == 2
    assert "not an inversion's result" in err
