"""What the page says of bad input, of durations and of what is not known."""

from __future__ import annotations

import httpx
import pytest
from test_page import CSV, count, has, press, submit

pytestmark = pytest.mark.slow

SIGMA = {"horizontal": 0.01, "vertical": 0.03}


def with_data(service, name="tiny", **more):
    ref = httpx.post(service.url + "/v1/files", content=CSV.encode()).json()["ref"]
    datasets = [{"name": "gnss", "file": ref, "sigma": SIGMA}]
    return submit(service, name, datasets=datasets, **more)


def test_no_part_of_a_duration_is_a_whole_60(page):
    said = page().run(
        "import('/dashboard/format.js').then(({ duration }) =>"
        " [9.97, 59.4, 59.6, 179.6, 3599.7, 7199, 7260].map(duration))"
    )
    assert said == [
        "10 s", "59 s", "1 min 0 s", "3 min 0 s", "1 h 0 min", "2 h 0 min", "2 h 1 min"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("button", "given", "said"),
    [
        ("Priority", "high", "high is no priority: that is a whole number"),
        ("Priority", "1001", "from -1000 to 1000"),
        ("Tags", "italy -x", "-x is no tag: that begins with a letter or a digit"),
    ],
)
def test_a_priority_or_tag_that_cannot_be_is_said(page, service, button, given, said):
    identity = with_data(service)
    shown = page(f"#/campaigns/{identity}")
    shown.until(f"{count('h1 .badge.complete')} > 0")
    shown.run(f"window.prompt = () => {given!r}; 0")
    shown.run(press(button))
    shown.until(f"{count('[role=alert]')} === 1")
    # what happens meanwhile does not take the words away
    asked = {"campaign": identity, "name": "later", "datasets": ["gnss"]}
    httpx.post(service.url + "/v1/inversions", json=asked).raise_for_status()
    shown.until(f"{count('.timeline rect.inversion.accepted')} === 1")
    assert said in shown.run("document.querySelector('[role=alert]').textContent")


def test_the_list_says_what_no_priority_or_tag_can_be(page, service):
    submit(service)
    shown = page()
    shown.until(f"{count('.row')} === 1")
    shown.run(press("Choose it"))
    for button, said in (("Priority", "no priority"), ("Add tags", "no tag")):
        shown.run("window.prompt = () => '-?'; 0")
        shown.run(press(button))
        shown.until(f"{count('[role=alert]')} === 1 && {has(said)}")
    # they are still chosen, to be given what can be
    shown.run("window.prompt = () => 'italy'; 0")
    shown.run(press("Add tags"))
    shown.until(f"{count('.row .tag')} === 1")
    assert shown.run(count("[role=alert]")) == 0


def test_an_inversion_that_runs_in_a_complete_campaign_is_followed(
    page, service, worker
):
    identity = with_data(service)
    shown = page(f"#/campaigns/{identity}")
    shown.until(f"{count('h1 .badge.complete')} > 0")
    worker.gate.clear()
    asked = {"campaign": identity, "name": "later", "datasets": ["gnss"]}
    httpx.post(service.url + "/v1/inversions", json=asked).raise_for_status()
    bar = "document.querySelector('.timeline rect.inversion.running')"
    shown.until(f"{bar} !== null")
    shown.run(f"window.first = {bar}; 0")
    # its bar is drawn anew, longer, though no event says so
    shown.run("new Promise((done) => { setTimeout(done, 1500); })")
    shown.run(f"window.first = {bar}; 0")
    shown.until(f"{bar} !== first", 10)
    worker.gate.set()
    shown.until(f"{count('.timeline rect.inversion.accepted')} === 1")


def test_what_waits_in_a_complete_campaign_waits_for_no_green_functions(page):
    said = page().run(
        "import('/dashboard/elements/inversion-card.js').then(({ inversionCard }) =>"
        " Promise.all([true, false].map((complete) => inversionCard("
        "{ name: 'a', state: 'waiting' }, complete).then((c) => c.textContent))))"
    )
    assert ["Green's functions are accepted" in one for one in said] == [False, True]


def test_no_worker_is_still_to_be_reported_of_what_has_ended(page):
    rows = page().run("""import('/dashboard/elements/timeline.js')
      .then(({ Timeline }) => {
        const line = new Timeline(() => {}), at = '2026-01-01T00:00:00Z';
        const span = { kind: 'group', index: 0, number: 1, state: 'lost', worker: null,
          started_at: at, finished_at: at };
        line.show([span, { ...span, state: 'running', finished_at: null },
          { ...span, worker: 'x' }], new Map(), () => undefined);
        return [...line.element.querySelectorAll('.line')].map((r) => r.textContent);
      })""")
    assert rows == ["Worker x", "worker not reported yet", "worker not known"]


def test_names_without_a_break_stay_within_a_phone(page, service):
    inversion = {"name": "s" * 60, "datasets": ["gnss"]}
    identity = with_data(service, "A" * 150, inversions=[inversion])
    shown = page(f"#/campaigns/{identity}", width=375)
    shown.until(f"{count('.inversion h3')} === 1")
    assert shown.run("document.documentElement.scrollWidth") == 375
