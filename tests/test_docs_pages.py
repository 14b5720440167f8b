"""Snippets do what their pages say, and each class of errors has its advice."""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from afterslip.cli.main import app
from afterslip.error_class import ErrorClass
from afterslip.spec import load, parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLE = ROOT / "examples/normal_fault"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/*/*.md")])
FENCE = re.compile(
    r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE
)


def blocks(page):
    """(language, title, text) of each block of a page."""
    return [match.groups() for match in FENCE.finditer((DOCS / page).read_text())]


def test_the_steps_to_an_own_fault_are_the_example(tmp_path):
    steps = "".join(text for kind, _, text in blocks("own-fault.md") if kind == "yaml")
    (tmp_path / "campaign.yaml").write_text(steps)
    assert load(tmp_path / "campaign.yaml") == load(EXAMPLE / "campaign.yaml")


def test_snippets_of_the_concepts_hold():
    names = {}
    done = 0
    for kind, _, text in blocks("concepts.md"):
        if kind == "python":
            exec(compile(text, "concepts.md", "exec"), names)
            done += text.count("assert")
    assert done >= 3


HOW_TO = ("several-faults", "insar", "postseismic")


def campaign_of(topic, folder):
    """Return the campaign of a how-to and what its files hold, written to a folder."""
    for _, title, text in blocks(f"how-to/invert-{topic}.md"):
        if title:
            (folder / title).write_text(text)
    campaign = parse_campaign(load(folder / "campaign.yaml"), folder)
    return campaign, resolve(campaign, LocalFiles(folder))


@pytest.mark.parametrize("topic", HOW_TO)
def test_campaign_of_a_how_to_passes_the_checks(topic, tmp_path):
    campaign, inputs = campaign_of(topic, tmp_path)
    (name,) = inputs.datasets
    assert len(inputs.datasets[name]) > 5
    assert campaign.inversions[0].datasets == [name]


def test_faults_of_the_how_to_touch_in_its_mesh(tmp_path):
    from afterslip_workers.engines.viscoelastic.building import build_model

    campaign, inputs = campaign_of("several-faults", tmp_path)
    files = LocalFiles(tmp_path)
    model, facts = build_model(campaign.model, inputs, files, lambda _: None)
    assert facts["notes"] == []
    thrust, splay = (set(model.faults[name].nodes) for name in ("thrust", "splay"))
    assert len(thrust & splay) > 10
    shared = model.mesh.nodes[sorted(thrust & splay)]
    assert shared[:, 2] == pytest.approx(-15.05e3, abs=50.0)


def test_mesh_of_the_how_to_is_one_that_its_campaign_takes(tmp_path, monkeypatch):
    from afterslip_solver.mesh import import_mesh

    monkeypatch.chdir(tmp_path)
    script, spec = (text for _, _, text in blocks("how-to/use-your-own-mesh.md"))
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    (tmp_path / "campaign.yaml").write_text(spec)
    campaign = parse_campaign(load(tmp_path / "campaign.yaml"), tmp_path)
    resolve(campaign, LocalFiles(tmp_path))
    names = [fault.name for fault in campaign.model.faults]
    geometry = import_mesh(tmp_path / "model.msh", scale=1e3, faults=names)
    assert set(geometry.mesh.tag_names) == {x.name for x in campaign.model.layers}
    assert geometry.faults["main"].length == pytest.approx(40e3)


def lines_of(text):
    """Return each command of a shell block, continued lines joined."""
    return re.sub(r"\\\n", " ", text).splitlines()


def commands():
    """(page, words) of each use of the command in a block of any page."""
    for page in PAGES:
        for kind, _, text in FENCE.findall(page.read_text()):
            for line in lines_of(text) if kind in ("sh", "text") else ():
                found = re.match(r"(?:[A-Z_]+=\S+ )*(?:\S*/)?afterslip (?=[a-z])", line)
                if found:
                    words = shlex.split(
                        line[found.end() :].split(" | ")[0], comments=True
                    )
                    yield page.name, words


@cache
def help_of(*verbs):
    """Return what ``afterslip VERB --help`` prints, None where there is none."""
    done = CliRunner().invoke(app, [*verbs, "--help"], env={"COLUMNS": "200"})
    return done.output if done.exit_code == 0 else None


def test_every_command_of_the_pages_has_its_verb_and_options():
    uses = list(commands())
    assert len(uses) > 40
    assert help_of("no-such-verb") is None
    for page, words in uses:
        verbs = tuple(words[: 2 if words[0] in ("token", "webhook") else 1])
        known = help_of(*verbs)
        assert known is not None, (page, words)
        given = {word.partition("=")[0] for word in words if re.match(r"-\D", word)}
        missing = {name for name in given if not re.search(rf"{name}\b", known)}
        assert not missing, (page, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_python_block_is_python(page):
    for kind, _, text in FENCE.findall(page.read_text()):
        if kind == "python":
            compile(text, str(page), "exec")


def test_every_class_of_errors_has_its_advice():
    text = (DOCS / "troubleshooting.md").read_text()
    advice = dict(re.findall(r"^### (\w+)\n\n(.+?)(?=^##|\Z)", text, re.M | re.S))
    assert list(advice) == [name.value for name in ErrorClass]
    assert all(len(words.split()) > 8 for words in advice.values())


def test_every_drawing_is_of_the_text_on_its_page():
    texts = [
        text
        for page in PAGES
        for text in re.findall(r"```mermaid\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    names = {hashlib.sha256(text.encode()).hexdigest()[:12] for text in texts}
    drawn = {path.stem: path for path in (DOCS / "images/drawings").glob("*.svg")}
    assert names
    assert set(drawn) == names, "run .ci/drawings.py"
    for path in drawn.values():
        foreign = re.findall(
            r'(?:href|src)="(?!#)|<script|<foreignObject', path.read_text()
        )
        assert not foreign, path.name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if ":" in target:
            continue
        name, _, part = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if part:
            heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads
            }
            assert part in slugs, target


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_goes_through(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "examples/normal_fault")
    command = f'"{sys.executable}" -m afterslip'
    at = tmp_path
    for kind, _, text in blocks("tutorial.md"):
        if kind == "sh":
            script = re.sub(r"^afterslip", lambda _: command, text, flags=re.MULTILINE)
            subprocess.run(["bash", "-ec", script], cwd=at, check=True, timeout=600)
            if text.startswith("cd "):
                at = at / text.split()[1]
    python = [text for kind, _, text in blocks("tutorial.md") if kind == "python"]
    (at / "snippets.py").write_text("\n".join(python))
    done = subprocess.run(
        [sys.executable, "snippets.py"], cwd=at, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "NEW, up: at once" in done.stdout
    assert "rough: peak" in done.stdout
    for name in (
        "plan.png",
        "slip.pdf",
        "fit.png",
        "resolution.png",
        "result/slip.vtu",
    ):
        assert (at / name).stat().st_size > 1000, name
