"""A new campaign from the page: editor, plan, submit."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from test_page import CONTRAST, count, has

from afterslip import Campaign

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "service" / "afterslip_service" / "dashboard" / "examples"
READY = has("can be submitted")
# s; the first plan imports the engines
WAIT = 90
VIEW = (
    "document.querySelector('.editor').shadowRoot.querySelector('.cm-content')"
    ".cmTile.view"
)
CSV = "station,x_km,y_km,east,north,up\\nA,0,0,1,0.2,0.1\\nB,9,3,0.5,0.1,0\\n"

PLACES = """name: a
model:
  layers:
    - {name: crust, rheology: {maxwell: {vis§}}}
    - name: b
      rheology:
        max§
  faults:
    - name: other
      §
  mesh: {size: {§
sources:
- fault: main
  comp§
times: {until: 1 yr, output: [0 d, §
solver: {backend: §"""
WANTED = [
    [["model", "layers", 0, "rheology", "maxwell"], True],
    [["model", "layers", 1, "rheology"], True],
    [["model", "faults", 0], True],
    [["model", "mesh", "size"], True],
    [["sources", 0], True],
    [["times", "output", 1], False],
    [["solver", "backend"], False],
]


def write(shown, text):
    """Replace the editor's text."""
    shown.run(
        f"(() => {{ const view = {VIEW}; view.dispatch({{changes: "
        f"{{from: 0, to: view.state.doc.length, insert: {json.dumps(text)}}}}}); }})()"
    )


def text_of(shown):
    return shown.run(f"{VIEW}.state.doc.toString()")


@pytest.mark.slow
def test_an_example_is_planned_and_submitted(page, service):
    shown = page("#/new")
    shown.until(READY, WAIT)
    assert shown.run(count(".map .unit")) == 20
    assert shown.run(count(".map .station")) == 20
    assert "about 4," in shown.text()
    shown.run("document.querySelector('button.primary').click()")
    shown.until("location.hash.startsWith('#/campaigns/')")
    (made,) = httpx.get(service.url + "/v1/campaigns").json()["items"]
    assert made["name"] == "normal-fault"


@pytest.mark.slow
def test_what_is_not_known_before_the_first_campaign_is_said(page):
    shown = page("#/new")
    shown.until(READY, WAIT)
    text = shown.text()
    assert "Until all is computed\nnot known yet" in text
    assert "is measured by the first groups" in text


@pytest.mark.slow
def test_a_plan_of_waves_shows_voxels_steps_and_no_warning(page):
    shown = page("#/new")
    shown.until(READY, WAIT)
    shown.run(
        "(() => { const start = document.querySelector('select'); start.value = 2;"
        " start.dispatchEvent(new Event('change')); })()"
    )
    shown.until(has("waves of a thrust can be submitted"), WAIT)
    text = shown.text()
    for words in ("Voxels\nabout 160,000", "Unknowns\nabout 500,000", "Time steps"):
        assert words in text
    assert "Memory of a worker" in text
    assert shown.run(count(".note")) == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1280])
def test_no_name_of_a_station_covers_another(page, width):
    shown = page("#/new", width=width)
    shown.until(READY, WAIT)
    boxes = shown.run(
        "[...document.querySelectorAll('.map text')].filter((t) => /^N\\d/.test("
        "t.textContent)).map((t) => { const b = t.getBoundingClientRect();"
        "return [b.left, b.top + 2, b.right, b.bottom - 2]; })"
    )
    assert len(boxes) > 8
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = one[0] >= other[2] or other[0] >= one[2]
            assert apart or one[1] >= other[3] or other[1] >= one[3]


@pytest.mark.slow
def test_what_is_wrong_is_said_at_its_line(browser, service):
    # the browser itself notes each refusal of the service
    shown = browser.page(f"{service.url}/#/new")
    shown.until(READY, WAIT)
    good = text_of(shown)
    write(shown, good.replace("dip: 45", "dip: 95").replace("far: 20", "fare: 20"))
    shown.until(f"{count('.problems li')} >= 2")
    lines = good.splitlines()
    wanted = {i for i, s in enumerate(lines, 1) if "dip: 45" in s or "far: 20" in s}
    said = shown.run(
        "[...document.querySelectorAll('.problems button')].map((b) => b.textContent)"
    )
    assert {int(words.split()[1]) for words in said} == wanted
    assert shown.run("document.querySelector('button.primary').disabled")
    marked = "document.querySelector('.editor').shadowRoot.querySelectorAll"
    assert shown.run(f"{marked}('.cm-lintRange-error').length") >= 2
    write(shown, good + "\n  : [")
    shown.until(has("to correct"))
    write(shown, good)
    shown.until(READY, WAIT)
    assert shown.run(count(".problems li")) == 0
    noted = [c["entry"]["text"] for c in shown.complaints()]
    assert all("422" in text for text in noted)
    shown.close()


@pytest.mark.slow
def test_what_is_wrong_is_said_in_plain_words_and_the_map_stays(browser, service):
    shown = browser.page(f"{service.url}/#/new")
    shown.until(READY, WAIT)
    good = text_of(shown)
    write(shown, good.replace("dip: 45", "dip: [45"))
    shown.until(has("A list is not closed: ] is missing"))
    write(shown, good.replace("strike:", "strik:"))
    shown.until(has("strik is not a known key; did you mean strike?"))
    assert shown.run(count(".map .station")) == 20
    assert shown.run(has("As it was before the last change."))
    write(shown, good)
    shown.until(READY, WAIT)
    assert not shown.run(has("As it was before the last change."))
    shown.close()


@pytest.mark.slow
def test_what_was_written_is_there_after_a_look_elsewhere(page):
    shown = page("#/new")
    shown.until(READY, WAIT)
    begun = "document.querySelector('select').value"
    assert shown.run(begun) == "0"
    write(shown, text_of(shown).replace("normal-fault", "mine"))
    shown.until(has("mine can be submitted"), WAIT)
    assert shown.run(begun) == "own"
    shown.run("location.hash = '#/'; 0")
    shown.until(has("afterslip submit"))
    shown.run("location.hash = '#/new'; 0")
    shown.until(has("mine can be submitted"), WAIT)
    assert shown.run(has("Files beside the spec: offsets.csv"))
    # an example replaces it only if that is wanted
    shown.run("window.confirm = () => false; 0")
    choose = (
        "(() => { const s = document.querySelector('select'); s.value = '1';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    shown.run(choose)
    assert shown.run(begun) == "own"
    shown.run("window.confirm = () => true; 0")
    shown.run(choose)
    shown.until(has("thrust can be submitted"), WAIT)
    assert shown.run(begun) == "1"


@pytest.mark.slow
def test_what_is_being_written_survives_a_reload(page):
    shown = page("#/new")
    shown.until(READY, WAIT)
    # what the page shows beside the spec does not take its place
    assert shown.run("document.querySelector('a[href=\"/docs\"]').target") == "_blank"
    write(shown, text_of(shown).replace("normal-fault", "mine"))
    shown.until(has("mine can be submitted"), WAIT)
    shown.reload()
    shown.until(has("mine can be submitted"), WAIT)
    assert shown.run("document.querySelector('select').value") == "own"
    assert shown.run(has("Files beside the spec: offsets.csv"))
    # what is submitted is no draft any more
    shown.run("document.querySelector('button.primary').click()")
    shown.until("location.hash.startsWith('#/campaigns/')")
    assert shown.run("sessionStorage.length") == 0


@pytest.mark.slow
def test_a_file_that_nobody_chose_is_named_at_its_line(browser, service):
    # the browser itself notes each refusal of the service
    shown = browser.page(f"{service.url}/#/new")
    shown.until(READY, WAIT)
    good = text_of(shown)
    write(shown, good.replace("offsets.csv}", "ofsets.csv}"))
    said = "is ofsets.csv, and no such file is chosen; choose it under Single files"
    shown.until(has(said))
    (line,) = (i for i, s in enumerate(good.splitlines(), 1) if "offsets.csv}" in s)
    assert shown.run(has(f"Line {line} datasets[0].file {said}"))
    assert "sha256" not in shown.text()
    shown.close()


@pytest.mark.slow
def test_a_folder_replaces_the_files_of_the_example(page, tmp_path):
    folder = tmp_path / "italy"
    folder.mkdir()
    spec = (EXAMPLES / "normal-fault" / "campaign.yaml").read_text()
    (folder / "campaign.yaml").write_text(
        spec.replace("normal-fault", "italy").replace("offsets.csv", "own.csv")
    )
    data = (EXAMPLES / "normal-fault" / "offsets.csv").read_text()
    (folder / "own.csv").write_text(data)
    shown = page("#/new")
    shown.until(READY, WAIT)
    root = shown.call("DOM.getDocument")["root"]["nodeId"]
    field = shown.call("DOM.querySelector", nodeId=root, selector="[webkitdirectory]")
    shown.call("DOM.setFileInputFiles", nodeId=field["nodeId"], files=[str(folder)])
    shown.until(has("italy can be submitted"), WAIT)
    assert shown.run("document.querySelector('select').value") == "own"
    assert "Files beside the spec: own.csv\n" in shown.text()


@pytest.mark.slow
def test_files_chosen_beside_the_spec_are_uploaded_once(page, service):
    spec = (EXAMPLES / "normal-fault" / "campaign.yaml").read_text()
    spec = spec.replace("offsets.csv", "data/own.csv")
    spec = spec.replace(
        "name: gnss, ", "name: gnss, sigma: {horizontal: 0.01, vertical: 0.02}, "
    )
    spec = spec.replace("normal-fault", "own-fault")
    spec = spec.replace("kind: geographic, lon0: 13.25, lat0: 42.80", "kind: local")
    spec = spec.replace("data/own.csv", "own.csv")
    shown = page("#/new")
    shown.until(READY, WAIT)
    shown.run(
        "(() => { window.uploads = window.plans = 0; const real = window.fetch; "
        "window.fetch = (path, ...rest) => { "
        "uploads += path === '/v1/files'; plans += path === '/v1/plan'; "
        "return real(path, ...rest); };"
        "const chosen = new DataTransfer();"
        f"chosen.items.add(new File([{json.dumps(spec)}], 'campaign.yaml'));"
        f"chosen.items.add(new File(['{CSV}'], 'own.csv'));"
        "const field = document.querySelectorAll('input[type=file]')[1];"
        "field.files = chosen.files; field.dispatchEvent(new Event('change')); })()"
    )
    shown.until(has("own-fault can be submitted"), WAIT)
    assert shown.run(count(".map .station")) == 2
    before = shown.run("plans")
    write(shown, text_of(shown).replace("dip: 45", "dip: 46"))
    shown.until(f"plans > {before}")
    shown.until(has("own-fault can be submitted"), WAIT)
    assert shown.run("uploads") == 1


@pytest.mark.slow
def test_completion_knows_the_place(page):
    shown = page("#/new")
    shown.until(READY, WAIT)
    found = shown.run(
        "import('/dashboard/spec/schema.js').then(({ placeOf }) => {"
        f"const marked = {json.dumps(PLACES)}, text = marked.replaceAll('§', '');"
        "return [...marked.matchAll(/§/g)].map((m, i) => placeOf(text, m.index - i))"
        ".map(({ path, key }) => [path, key]); })"
    )
    assert found == WANTED
    offered = shown.run(
        "Promise.all([import('/dashboard/spec/schema.js'), fetch('/openapi.json')"
        ".then((a) => a.json())]).then(([{ Schema, choices }, api]) => {"
        "const s = new Schema(api.components.schemas);"
        "const names = (path, key) => choices(s, {path, key, from: 0}, 'viscoelastic',"
        " ['a.csv']).map((c) => c.label);"
        "return [names(['model', 'faults', 0, 'plane'], true),"
        " names(['solver', 'backend'], false), names(['stations', 'file'], false),"
        " names(['sources', 'components', 0], false)]; })"
    )
    assert {"strike", "dip", "length", "width"} <= set(offered[0])
    assert offered[1] == ["auto", "cpu", "gpu"]
    assert offered[2] == ["a.csv"]
    assert offered[3] == ["strike", "dip"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(375, False), (1280, True), (2560, False)])
def test_it_is_readable_on_any_screen(page, width, dark):
    shown = page("#/new", width=width, dark=dark)
    shown.until(READY, WAIT)
    assert shown.run("document.documentElement.scrollWidth - innerWidth") <= 0
    assert shown.run(CONTRAST) == []
    # each field stands below its words, where those of its neighbours stand
    beside = shown.run(
        "[...document.querySelectorAll('.choices label')].filter((label) =>"
        " label.querySelector('input, select').getBoundingClientRect().left"
        " > label.getBoundingClientRect().left).map((label) => label.innerText)"
    )
    assert beside == []


def test_the_page_begins_with_the_examples_of_the_project():
    begun = json.loads((EXAMPLES / "index.json").read_text())
    for example in begun:
        folder = EXAMPLES / example["folder"]
        assert Campaign.from_yaml(folder / example["spec"]).name
        assert all((folder / name).is_file() for name in example["files"])
    for ours, theirs in (("normal-fault", "normal_fault"), ("waves", "waves")):
        spec = (ROOT / "examples" / theirs / "campaign.yaml").read_text()
        assert (EXAMPLES / ours / "campaign.yaml").read_text() == spec


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "said"), [(60, False), (250, True)])
def test_a_section_reaches_the_bottom_or_says_where_it_is_cut(page, depth, said):
    shown = page("#/")
    words = shown.run(f"""import('/dashboard/elements/plan-map.js')
      .then(({{ PlanMap }}) => {{
        const map = new PlanMap(), end = 100;
        map.show({{
          name: 'a', frame: {{ kind: 'local' }}, bodies: [], stations: [],
          domain: {{ x: [-end, end], y: [-end, end], depth: {depth} }},
          layers: [{{ name: 'crust', bottom: 20, creeps: false }},
                   {{ name: 'mantle', bottom: {depth}, creeps: true }}],
          faults: [{{ name: 'main',
                     outline: [[0, 0], [0, 20], [20, 20], [20, 0]],
                     top: [[0, 0], [0, 20]], sources: [],
                     line: [[0, -2], [17, -12]] }}],
          section: {{ azimuth: 90 }},
        }});
        return map.element.querySelector('.section').textContent;
      }})""")
    assert ("It is cut at 25 km; the domain reaches 250 km" in words) == said
    assert f"down to {depth} km" in words if said else "60" in words
