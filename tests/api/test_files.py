"""Files beside a spec and in a store; nothing outside either."""

from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip.spec.files import LocalFiles, StoredFiles, content_ref


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "sub").mkdir(parents=True)
    (base / "a.csv").write_text("inside")
    (base / "sub" / "b.csv").write_text("below")
    (tmp_path / "secret.txt").write_text("secret")
    (base / "link.csv").symlink_to(tmp_path / "secret.txt")
    (base / "loop.csv").symlink_to(base / "loop.csv")
    (base / "inner.csv").symlink_to(base / "a.csv")
    return base


@pytest.mark.parametrize("ref", ["a.csv", "sub/b.csv", "inner.csv", "./a.csv"])
def test_files_below_the_folder_are_read(folder: Path, ref: str) -> None:
    files = LocalFiles(folder)
    assert files.exists(ref)
    assert files.read(ref) in (b"inside", b"below")


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("../secret.txt", "lead out"),
        ("sub/../../secret.txt", "lead out"),
        ("link.csv", "leads out"),
        ("/etc/passwd", "relative"),
        ("C:\\x", "relative"),
        ("a.csv\0", "characters"),
        ("sub", "is a folder"),
        ("a.cvs", "not found (did you mean a.csv?)"),
        ("nowhere/a.csv", "not found"),
        ("a.csv/x", "cannot be read"),
        ("sha256:" + "0" * 64, "uploaded"),
        ("x" * 900, "cannot be read"),
        ("x" * 5000, "longer than"),
        ("loop.csv", "cannot be read"),
    ],
)
def test_everything_else_is_refused(folder: Path, ref: str, says: str) -> None:
    files = LocalFiles(folder)
    assert not files.exists(ref)
    with pytest.raises(SpecError) as caught:
        files.read(ref)
    assert says in str(caught.value)


def test_uploads_are_found_by_content(tmp_path: Path, folder: Path) -> None:
    ref = content_ref(b"data")
    store = tmp_path / "store"
    (store / "files").mkdir(parents=True)
    (store / "files" / ref.removeprefix("sha256:")).write_bytes(b"data")
    files = StoredFiles(store)
    assert files.read(ref) == b"data"
    with pytest.raises(SpecError, match="not uploaded"):
        files.read(content_ref(b"other"))
    with pytest.raises(SpecError, match="reads uploads only"):
        files.read("a.csv")
    with_base = StoredFiles(store, folder)
    assert with_base.read("a.csv") == b"inside"
    assert with_base.read(ref) == b"data"
    with pytest.raises(SpecError, match="lead out"):
        with_base.read("../secret.txt")
