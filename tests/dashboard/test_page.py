"""The dashboard in a real browser."""

from __future__ import annotations

import json
import threading
import time

import httpx
import pytest
import tiny_worker

from afterslip_service.http import stream

pytestmark = pytest.mark.slow

CSV = "station,x_km,y_km,east,north,up\nA,0,0,1.0,0.2,0.1\nB,9,3,0.5,0.1,0.0\n"


def submit(service, name="tiny", **changes):
    spec = tiny_worker.spec(name, **changes)
    answer = httpx.post(service.url + "/v1/campaigns", json=spec, timeout=60)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def has(text):
    return f"document.body.innerText.includes({text!r})"


def count(selector):
    return f"document.querySelectorAll({selector!r}).length"


def test_empty_page_says_how_to_begin(page):
    shown = page()
    shown.until(has("afterslip submit"))
    shown.until(has("ready"))


def test_list_follows_campaigns_without_a_reload(page, service):
    shown = page()
    shown.until(has("No campaigns yet"))
    submit(service, "first")
    shown.until(has("first"))
    shown.until(has("3 of 3 groups"))
    shown.until(f"{count('.badge.complete')} > 0")


def test_campaign_is_followed_live_to_its_end(page, service, worker):
    worker.gate.clear()
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(has("building"))
    worker.delay_s = 0.6
    worker.gate.set()
    shown.until(f"{count('.grid button.running')} > 0")
    shown.until(has("Running now"))
    shown.until(f"{count('.grid button.accepted')} === 3")
    shown.until(has("complete"))
    assert not shown.run(has("Running now"))


def test_a_changed_group_is_taken_from_its_event(page, service, worker):
    """The list of groups is read when the campaign changes, not for each of them."""
    worker.gate.clear()
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(has("building"))
    lists = (
        "performance.getEntriesByType('resource')"
        ".filter(({ name }) => name.includes('/groups?limit=')).length"
    )
    worker.delay_s = 1.0
    worker.gate.set()
    shown.until(f"{count('.grid button.running')} > 0")
    before = shown.run(lists)
    shown.until(f"{count('.grid button.accepted')} === 3")
    shown.until(has("3 of 3 groups"))
    shown.until(has("complete"))
    # once it is built and once it has ended
    assert shown.run(lists) - before <= 2


def test_an_answer_that_is_older_than_events_does_not_undo_them(page, service, worker):
    first, second = threading.Event(), threading.Event()
    worker.fail["group", 0] = [lambda _: first.wait(60) and None]
    worker.fail["group", 1] = [lambda _: second.wait(60) and None]
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count('.grid button.running')} === 2")
    shown.run(
        "window.prompt = () => '7'; const ask = window.fetch;"
        "window.fetch = async (path, options) => {"
        "const answer = await ask(path, options);"
        "if (options?.method === 'PATCH') window.go = null;"
        "if (path.includes('/groups?') && window.go === null)"
        " await new Promise((go) => { window.go = go; });"
        "return answer; }; 0"
    )
    shown.run(press("Priority"))
    shown.until("!!window.go")
    first.set()
    shown.until(f"{count('.grid button.accepted')} === 2")
    shown.run("window.go()")
    shown.until(has("Priority\n7"))
    assert shown.run(count(".grid button.accepted")) == 2
    second.set()


def test_what_happens_while_the_stream_is_opened_is_shown(
    page, service, worker, monkeypatch
):
    worker.gate.clear()
    let_go = threading.Event()
    newest = stream.Hub._newest

    def slowly(hub):
        let_go.wait(60)
        return newest(hub)

    campaign = submit(service)
    monkeypatch.setattr(stream.Hub, "_newest", slowly)
    shown = page(f"#/campaigns/{campaign}")
    # the page does not wait for its stream for ever
    shown.until(has("building"))
    worker.gate.set()
    url = f"{service.url}/v1/campaigns/{campaign}"
    while httpx.get(url).json()["state"] != "complete":
        time.sleep(0.05)
    let_go.set()
    shown.until(f"{count('.grid button.accepted')} === 3")


def test_a_late_answer_does_not_hide_that_a_campaign_is_complete(page, service, worker):
    worker.gate.clear()
    identity = submit(service)
    shown = page(f"#/campaigns/{identity}")
    shown.until(has("building"))
    shown.run(f"""(() => {{
      const fetched = window.fetch;
      window.fetch = async (...asked) => {{
        const answer = await fetched(...asked);
        const path = new URL(answer.url).pathname;
        if (!window.held && path === '/v1/campaigns/{identity}') {{
          window.held = true;
          await new Promise((later) => setTimeout(later, 4000));
          window.late = true;
        }}
        return answer;
      }};
    }})()""")
    worker.gate.set()
    shown.until("window.late === true")
    shown.until(f"{count('h1 .badge.complete')} > 0")


def test_failure_is_readable_and_can_be_retried(page, service, worker):
    worker.fail["group", 1] = ["bad_input"]
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(has("group 1: a planned bad_input"))
    shown.run("document.querySelector('.grid button.failed').click()")
    shown.until(has("Why it ended"))
    shown.run(
        "[...document.querySelectorAll('button')]"
        ".find((b) => b.textContent.startsWith('Retry')).click()"
    )
    shown.until(f"{count('.grid button.accepted')} === 3")
    assert not shown.run(has("a planned bad_input"))


def test_why_it_waits_and_what_helps_is_said(page, service, worker):
    worker.gate.clear()
    identity = submit(service)
    shown = page(f"#/campaigns/{identity}")
    shown.until(has("building"))
    httpx.post(f"{service.url}/v1/campaigns/{identity}/pause")
    shown.until(f"{count('.why li')} > 0")
    assert shown.run(count(".why")) == 1
    found = httpx.get(f"{service.url}/v1/campaigns/{identity}/explain").json()
    assert shown.run(has(found["waiting"][0]["message"]))


def test_cancel_asks_first(page, service, worker):
    worker.gate.clear()
    shown = page(f"#/campaigns/{submit(service)}")
    cancel = "document.querySelector('button.danger').click()"
    shown.until(f"{count('button.danger')} > 0")
    shown.run("window.confirm = () => false")
    shown.run(cancel)
    assert shown.run(count("h1 .badge.cancelled")) == 0
    shown.run("window.confirm = () => true")
    shown.run(cancel)
    shown.until(f"{count('h1 .badge.cancelled')} > 0")


def test_inversion_shows_its_figures_and_plots(page, service):
    ref = httpx.post(service.url + "/v1/files", content=CSV.encode()).json()["ref"]
    sigma = {"horizontal": 0.01, "vertical": 0.03}
    identity = submit(
        service,
        datasets=[{"name": "gnss", "file": ref, "sigma": sigma}],
        inversions=[{"name": "coseismic", "datasets": ["gnss"]}],
    )
    shown = page(f"#/campaigns/{identity}")
    shown.until(has("9.00"))
    shown.until(has("50.0 m"))
    # its figures are links: white in the dark, and too small to be read here
    assert shown.run(count(".links a[href*=plots]")) == 1
    assert shown.run(count(".inversion img")) == 0
    href = shown.run("document.querySelector('.links a[href*=report]').href")
    assert "tiny" in httpx.get(href).text


def test_texts_of_users_are_never_markup(page, service):
    shown = page(f"#/campaigns/{submit(service, '<img src=x onerror=alert(1)>')}")
    shown.until(has("<img src=x"))
    assert shown.run(count("img[src=x]")) == 0


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_page_does_not_scroll_sideways(page, service, worker, dark):
    worker.n_sources = 372
    worker.fail["group", 3] = ["bad_input"]
    identity = submit(service, "a-name-that-is-as-long-as-names-may-be-" * 4)
    for path in ("#/", f"#/campaigns/{identity}", "#/workers"):
        shown = page(path, width=400, dark=dark)
        shown.until("document.querySelector('main').children.length > 0")
        wide = "document.documentElement.scrollWidth - innerWidth"
        assert shown.run(wide) <= 0


def test_every_fact_of_a_worker_stands_within_a_phone(page, service):
    shown = page("#/workers", width=375)
    shown.until(f"{count('tbody td')} >= 9")
    outside = shown.run(
        "[...document.querySelectorAll('tbody td')].filter((cell) => {"
        "const { left, right } = cell.getBoundingClientRect();"
        "return left < 0 || right > innerWidth; }).length"
    )
    assert outside == 0
    assert shown.run("document.documentElement.scrollWidth") == 375
    names = shown.run(
        "[...document.querySelectorAll('th')].map((th) => th.textContent)"
    )
    said = shown.run(
        "[...document.querySelectorAll('tbody tr:first-child td')].map("
        "(cell) => getComputedStyle(cell, '::before').content)"
    )
    assert said == [f'"{name}"' for name in names]


CONTRAST = """(() => {
  const parse = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== "none") return null;
      const c = parse(style.backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const back = behind(e);
    if (!back) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.textContent.slice(0, 30), e.className, ratio]);
  }
  return poor;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_enough_contrast(page, service, worker, dark):
    """WCAG 2.2 AA: 4.5 to 1, in every state that a group can have."""
    worker.n_sources = 60
    worker.fail["group", 1] = ["bad_input"]
    identity = submit(service)
    for path in ("#/", f"#/campaigns/{identity}"):
        shown = page(path, dark=dark)
        shown.until(has("failed"))
        if path != "#/":
            shown.until(f"{count('.grid button')} > 5")
            states = ["waiting", "queued", "running", "stored", "accepted", "failed"]
            shown.run(
                f"{states}.forEach((s, i) => {{ "
                "document.querySelectorAll('.grid button')[i].className = s; })"
            )
        assert shown.run(CONTRAST) == []


def press(text):
    return (
        "[...document.querySelectorAll('button')]"
        f".find((b) => b.textContent === {text!r}).click()"
    )


def test_a_cancelled_campaign_is_taken_up_again_and_another_deleted(
    page, service, worker
):
    worker.gate.clear()
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(has("Cancel"))
    shown.run("window.confirm = () => true")
    shown.run(press("Cancel"))
    # the reason says what the button says
    shown.until(f"{has('Take up again')} && {has('cancelled: take it up again')}")
    worker.gate.set()
    shown.run(press("Take up again"))
    shown.until(f"{count('h1 .badge.complete')} > 0")
    shown.run(press("Delete"))
    shown.until(has("No campaigns yet"))
    assert httpx.get(service.url + "/v1/campaigns").json()["items"] == []


def test_one_tab_stop_for_all_groups_and_arrows_inside(page, service):
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count('h1 .badge.complete')} > 0")
    shown.until(f"{count('.grid button')} > 1")
    assert shown.run(count(".grid button[tabindex='0']")) == 1
    shown.run("document.querySelector('.grid button').focus()")
    for key, index in (("ArrowRight", 1), ("ArrowLeft", 0), ("End", -1), ("Home", 0)):
        event = f"new KeyboardEvent('keydown', {{key: {key!r}, bubbles: true}})"
        shown.run(f"document.activeElement.dispatchEvent({event})")
        chosen = "[...document.querySelectorAll('.grid button')].at"
        assert shown.run(f"document.activeElement === {chosen}({index})")
    assert shown.run(count(".grid button[tabindex='0']")) == 1


def test_an_unknown_campaign_is_asked_for_once(browser, service):
    shown = browser.page(f"{service.url}/#/campaigns/nothing")
    shown.until(has("This cannot be shown"))
    try:
        assert len(shown.complaints()) == 1
    finally:
        shown.close()


def test_what_is_shown_is_marked_as_old_while_the_service_is_away(browser, service):
    shown = browser.page(f"{service.url}/#/")
    shown.until(has("No campaigns yet"))
    light = "document.querySelector('service-light')"
    shown.run("window.away = true; window.real = window.fetch")
    shown.run("window.fetch = (...a) => away ? Promise.reject(0) : real(...a)")
    shown.run(f"{light}.look()")
    shown.until("document.querySelector('main').inert")
    assert "out of reach" in shown.text()
    shown.run(f"window.away = false; {light}.look()")
    shown.until("!document.querySelector('main').inert")
    shown.close()


def test_residuals_are_drawn_against_iterations_solve_after_solve(page):
    shown = page()
    drawn = shown.run(
        "import('/dashboard/elements/convergence.js').then(({ convergence }) => {"
        "const solves = [{ iterations: 4, curve: [[0, 1], [4, 1e-4]] },"
        " { iterations: 6, curve: [[0, 1e-1], [3, 1e-2], [6, 1e-5]] }];"
        "const chart = convergence({ state: 'accepted', solves, history: [] });"
        "return [chart.textContent, [...chart.querySelectorAll('path')].map((p) =>"
        " p.getAttribute('d').match(/[\\d.]+/g).map(Number))]; })"
    )
    words, (first, second) = drawn
    assert "iterations, all solves one after the other" in words
    assert "relative residual" in words
    # places along are iterations, heights are decades, from one origin
    per_iteration = (second[4] - first[0]) / 10
    assert first[2] - first[0] == pytest.approx(4 * per_iteration, abs=0.2)
    assert second[0] == pytest.approx(first[2])
    assert second[2] - second[0] == pytest.approx(3 * per_iteration, abs=0.2)
    per_decade = (first[3] - first[1]) / 4
    assert second[5] - first[1] == pytest.approx(5 * per_decade, abs=0.2)
    taken = {"state": "accepted", "solves": [], "history": [], "stats": {"taken": 4}}
    words = shown.run(
        "import('/dashboard/elements/convergence.js').then(({ convergence }) =>"
        f" convergence({json.dumps(taken)}).textContent)"
    )
    assert "all 4 sources were copied" in words
