"""Results of ``afterslip run`` lie where a reader finds the ones of this run only."""

import pytest
import typer
from rich.console import Console

from afterslip_service.commands.run import _verdict, copy_results


def result(folder, text):
    folder.mkdir(parents=True)
    (folder / "result.nc").write_text(text)
    (folder / "report.html").write_text(text)
    return folder


def test_results_of_several_inversions_replace_the_one_of_an_earlier_run(tmp_path):
    one = {"id": "i1", "name": "first"}
    sources = {"i1": result(tmp_path / "store/i1", "old")}
    copy_results(tmp_path, [one], sources)
    assert (tmp_path / "result.nc").read_text() == "old"
    (tmp_path / "notes.txt").write_text("mine")
    two = {"id": "i2", "name": "second"}
    sources["i2"] = result(tmp_path / "store/i2", "new")
    copy_results(tmp_path, [one, two], sources)
    assert not (tmp_path / "result.nc").exists()
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "first/result.nc").read_text() == "old"
    assert (tmp_path / "second/result.nc").read_text() == "new"
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_failed_inversion_leaves_no_files(tmp_path):
    copy_results(tmp_path, [{"id": "i1", "name": "first"}], {})
    assert list(tmp_path.iterdir()) == []


def test_the_figures_of_a_run_are_a_whole_line_in_a_pipe(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "60")
    summary = {"magnitude": 6.34, "magnitude_interval": [6.31, 6.36], "score": 1.43,
               "peak_slip": 0.62, "peak_slip_average": 0.5, "peak_slip_length": 13e3,
               "peak_slip_interval": [0.4, 0.5], "variance_reduction": 0.926,
               }  # fmt: skip
    done = {"name": "coseismic", "state": "accepted", "summary": summary}
    campaign = {"name": "n", "state": "complete", "n_sources": 4,
                "progress": {"accepted": 1}}  # fmt: skip
    _verdict(campaign, [done], tmp_path, Console(stderr=True))
    first, heads, figures = capsys.readouterr().out.splitlines()
    assert "4 Green's functions in 1 group, in " in first
    assert heads.split()[:2] == ["inversion", "Mw"]
    for part in ("coseismic", "6.34 (6.31 to 6.36)", "13 km", "92.6%", "1.43"):
        assert part in figures
    with pytest.raises(typer.Exit) as ended:
        _verdict(campaign, [{**done, "state": "failed"}], tmp_path, Console(quiet=True))
    assert ended.value.exit_code == 1
