"""A campaign that is watched: by worker, by place, by pace and by residual."""

from __future__ import annotations

import pytest
from test_page import count, has, submit

pytestmark = pytest.mark.slow

FAULT = ".faults path"


def press(shown, key):
    for kind in ("keyDown", "keyUp"):
        shown.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def test_timeline_shows_each_attempt_and_why_it_failed(page, service, worker):
    worker.fail["group", 1] = ["worker_lost"]
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count('.timeline rect.accepted')} === 4")
    assert shown.run(count(".timeline rect.group")) == 4
    failed = "document.querySelector('.timeline rect.group:not(.accepted) title')"
    said = shown.run(f"{failed}.textContent")
    assert "group 1, attempt 1" in said
    assert "(worker lost)" in said
    bar = "document.querySelector('.timeline rect.group.accepted')"
    event = "new PointerEvent('pointerover', {bubbles: true})"
    shown.run(f"{bar}.dispatchEvent({event})")
    shown.until(has("attempt 1: accepted"))
    shown.run(f"{bar}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    shown.until(has("Why it ended"))


def test_groups_lie_where_their_sources_do_and_keys_move_between_them(page, service):
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count(FAULT + '.accepted')} === 3")
    # sources 0 to 3 are both components of the first two patches along strike
    outline = "document.querySelector('.faults [data-group=\"0\"]').getAttribute('d')"
    assert shown.run(outline).count("M") == 2
    assert shown.run(has("main, 40 by 20 km: 5 by 1 patches"))
    assert shown.run(count(f"{FAULT}[tabindex='0']")) == 1
    focus = "document.activeElement.getAttribute('data-group')"
    shown.run(f"document.querySelector('{FAULT}').focus()")
    for key, there in (("ArrowRight", "1"), ("ArrowRight", "2"), ("ArrowRight", "2"),
                       ("ArrowLeft", "1"), ("Home", "0"), ("End", "2")):  # fmt: skip
        press(shown, key)
        assert shown.run(focus) == there
    assert shown.run(count(f"{FAULT}[tabindex='0']")) == 1
    press(shown, "Enter")
    shown.until(has("unit sources 8, 9"))
    assert shown.run(count(".grid button[aria-pressed='true']")) == 1
    press(shown, "Escape")
    shown.until(f"!{has('unit sources 8, 9')}")


def test_a_group_that_was_closed_before_it_was_read_stays_closed(page, service):
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count(FAULT + '.accepted')} === 3")
    # the page reads the group that is open anew when the campaign is complete
    shown.run("""{
      const real = window.fetch;
      window.waiting = [];
      window.fetch = (...all) => !String(all[0]).endsWith('/groups/2') ? real(...all)
        : new Promise((go) => window.waiting.push(() => go(real(...all))));
      0 }""")
    shown.run(f"document.querySelector('{FAULT}').focus()")
    for key in ("End", "Enter", "Escape", "Home", "Enter"):
        press(shown, key)
    shown.until("window.waiting.length >= 1")
    shown.until(has("unit sources 0, 1, 2, 3"))
    # the first answer comes last
    shown.run("window.waiting.forEach((go) => go())")
    shown.run("new Promise((go) => setTimeout(go, 500))")
    assert shown.run(has("unit sources 0, 1, 2, 3"))
    assert not shown.run(has("unit sources 8, 9"))


def test_five_thousand_groups_on_two_faults_are_drawn_and_marked(page):
    shown = page()
    drawn = shown.run("""import('/dashboard/elements/fault-map.js')
      .then(({ FaultMap }) => {
      const map = new FaultMap(() => {}), n = 20000, along = 100, cells = n / 4;
      const grid = (name) => ({ name, along_strike: along, down_dip: cells / along });
      const patch = Array.from({ length: n }, (_, k) => Math.floor(k / 2) % cells);
      const places = {
        faults: [grid('a'), grid('b')], fault: patch.map((_, k) => Number(k >= n / 2)),
        along_strike: patch.map((p) => p % along),
        down_dip: patch.map((p) => Math.floor(p / along)),
      };
      const groups = Array.from({ length: n / 4 }, (_, index) => ({
        index, state: 'waiting', sources: [0, 1, 2, 3].map((k) => 4 * index + k),
      }));
      map.show(places, groups, new Map());
      document.querySelector('main').append(map.element);
      for (const { index } of groups) map.mark(index, 'accepted');
      const found = (text) => map.element.querySelectorAll(text).length;
      return [found('svg'), found('path.accepted'), found('path[tabindex="0"]')];
    })""")
    # every group is drawn; each fault is one tab stop
    assert drawn == [2, 5000, 2]


def test_residual_against_iteration_grows_while_a_group_runs(page, service, worker):
    worker.delay_s = 9.0
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count('.grid button.running')} > 0")
    shown.run("document.querySelector('.grid button.running').click()")
    shown.until(has("iteration of each solve"))
    shown.until(has("Running now"))
    latest = (
        "document.querySelector('.convergence path.latest')?.getAttribute('d') ?? ''"
    )
    before = shown.until(latest)
    shown.until(f"({latest}) !== {before!r}")
    assert shown.run(count(".convergence .latest")) == 1


def test_pace_says_how_much_is_left_and_in_which_interval(page, service, worker):
    worker.n_sources, worker.delay_s = 60, 0.7
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(has("Time left"))
    shown.until(has("(90 %:"))
    shown.until(has("groups an hour"))
    shown.until(has("15 of 15 groups"))
    shown.until(f"!{has('Time left')}")
    assert shown.run(has("A group takes"))


def test_what_a_worker_reports_of_its_gpu_stands_beside_its_name(page):
    shown = page()

    def words(own):
        return shown.run(f"""import('/dashboard/elements/worker-use.js')
          .then(({{ use }}) => use({{ cpu_percent: 99.6, memory_used: 2097152,
            gpus: ['NVIDIA H200'], gpu_utilization: 87, gpu_memory_used: 1073741824,
            {own} }}))""")

    before = "CPU 100 % · memory 2 MiB · NVIDIA H200: "
    whole = "(whole GPU 87 %, 1,024 MiB)"
    own = "gpu_process_utilization: 0, gpu_process_memory: 5242880"
    assert words(own) == f"{before}0 %, 5 MiB {whole}"
    # a driver that tells nothing of single processes
    assert words("") == f"{before}– {whole}"
