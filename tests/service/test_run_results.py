"""Results of ``afterslip run`` lie where a reader finds the ones of this run only."""

from afterslip_service.commands.run import copy_results


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
