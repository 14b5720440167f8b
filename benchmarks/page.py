"""How fast the page is, in a real Chromium against a real service.

    python benchmarks/page.py [--json benchmarks/page-2core.json]

First load, lists of 10,000 campaigns and 5,000 groups while they are scrolled, the
slider of time over 50,625 surface nodes, and the bytes that opening a store takes.
Needs chromium, which draws here without a graphics processor: how long it computes for
a frame is therefore measured apart from how long the page's own code does, and both as
processor time, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import page_inputs

from afterslip_common.record import Record, device_name, document, record

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/dashboard"))
from browser import Browser, Page, find

ROWS = "document.querySelectorAll('.row').length > 0"
SQUARES = f"document.querySelectorAll('.grid button').length === {page_inputs.GROUPS}"
DRAWN = "document.querySelector('.map .arrows')?.getAttribute('d')?.length > 10"
# every frame in which something moves: what it took since the one before, ms
FRAMES = """(move, count) => new Promise((done) => {
  const took = []; let last = 0;
  const frame = (now) => {
    if (last) took.push(now - last);
    last = now;
    if (took.length >= count) { done(took); return; }
    move(took.length);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""
COUNTED = f"""document.querySelector('.many').innerText
  .includes('of {page_inputs.CAMPAIGNS:,}')"""
MORE = """for (let i = 0; i < 10; i += 1) {
  [...document.querySelectorAll('main > button')].at(-1).click();
}"""
# from the key to the rows that it leaves
SEARCH = """(() => {
  const field = document.querySelector('input[type=search]'), from = performance.now();
  field.value = 'bench user';
  field.dispatchEvent(new Event('input'));
  return new Promise((done) => {
    const observer = new MutationObserver(() => {
      observer.disconnect();
      requestAnimationFrame(() => done(performance.now() - from));
    });
    observer.observe(document.querySelector('.rows'), { childList: true });
  });
})()"""
NODES = (2 * page_inputs.SIDE + 1) ** 2
LEFT_OUT = """[...document.querySelectorAll('main p')]
  .map((p) => p.textContent.match(/From (\\d+) of/)).find(Boolean)"""
SCROLL = "(i) => window.scrollBy(0, i % 200 < 100 ? 60 : -60)"
SCRUB = """(i) => { const t = document.querySelector('#time');
  t.value = String(i % (Number(t.max) + 1)); t.dispatchEvent(new Event('input')); }"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the URL of a service on the database and the store of a folder."""
    command = [sys.executable, "-m", "afterslip", "serve", "--dispatcher", "off",
               "--database", str(folder / "page.sqlite"), "--port", "0",
               "--store", str(folder / "store")]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if " serves at " in line:
                yield line.split()[-1]
                break
        else:
            raise SystemExit("the service did not start")
    finally:
        process.terminate()
        process.wait(30)


def opened(
    browser: Browser, url: str, path: str, ready: str, *, data: bool = True
) -> tuple[Page, float, float]:
    """Open a view with nothing cached; return it, seconds and bytes until ready."""
    page = browser.page(f"{url}/healthz")
    page.call("Network.enable")
    page.call("Network.setCacheDisabled", cacheDisabled=True)
    before, begin = len(browser.events), time.perf_counter()
    page.call("Page.navigate", url=f"{url}/{path}")
    while not page.run(ready):
        if time.perf_counter() - begin > 120:
            raise SystemExit(f"{path}: never ready\n{page.text()}")
        time.sleep(0.01)
    seconds = time.perf_counter() - begin
    # of what is shown the bytes that were needed for it; all of the page itself
    time.sleep(0.0 if data else 0.5)
    return page, seconds, _arrived(browser.events[before:], page, data)


def _arrived(events: list[dict[str, Any]], page: Page, data: bool) -> int:
    """Bytes that came over the wire, of what is shown or of the page itself."""
    session = page._session  # noqa: SLF001
    own = [e for e in events if e.get("sessionId") == session]
    urls = {
        e["params"]["requestId"]: e["params"]["response"]["url"]
        for e in own
        if e["method"] == "Network.responseReceived"
    }
    return sum(
        e["params"]["encodedDataLength"]
        for e in own
        if e["method"] == "Network.loadingFinished"
        and ("/v1/" in urls.get(e["params"]["requestId"], "")) is data
    )


def used(browser: Browser, page: Page) -> tuple[float, float]:
    """Return s of processor time so far: of the page's code, of the whole browser."""
    metrics = page.call("Performance.getMetrics")["metrics"]
    code = next(m["value"] for m in metrics if m["name"] == "ScriptDuration")
    processes = browser.call("SystemInfo.getProcessInfo")["processInfo"]
    return code, sum(process["cpuTime"] for process in processes)


def frames(page: Page, move: str, count: int, words: str, name: str) -> list[Record]:
    """Measure frames while something moves."""
    took = np.array(page.run(f"({FRAMES})({move}, {count})"))
    note = (
        f"{words}, median of {len(took)} frames, 95 % within "
        f"{np.percentile(took, 95):.1f} ms; 60 a second"
    )
    return [record(name, float(np.median(took)), "ms", 1e3 / 60, note)]


def loads(browser: Browser, url: str, wide: str) -> list[Record]:
    """Measure the first load, and long lists while they are scrolled."""
    page, seconds, size = opened(browser, url, "", ROWS, data=False)
    note = f"nothing cached, {page_inputs.CAMPAIGNS:,} campaigns, until rows stand"
    records = [
        record("page_first_load_s", seconds, "s", 1.0, f"first load, {note}; limit"),
        record(
            "page_first_load_mb",
            size / 1e6,
            "MB",
            1.0,
            f"first load, of the page itself, {note}; limit",
        ),
    ]
    page.until(COUNTED, 120)
    page.run(MORE)
    rows = page.run("document.querySelectorAll('.row').length")
    words = f"list of {page_inputs.CAMPAIGNS:,} campaigns, {rows} rows, scrolled"
    records += frames(page, SCROLL, 240, words, "page_list_frame_ms")
    note = f"search in {page_inputs.CAMPAIGNS:,} campaigns, of which 100 ms are rest"
    records.append(record("page_search_ms", page.run(SEARCH), "ms", None, note))
    page.close()
    page, seconds, _ = opened(browser, url, f"#/campaigns/{wide}", SQUARES)
    note = f"campaign of {page_inputs.GROUPS:,} groups, until all stand"
    records.append(record("page_groups_s", seconds, "s", None, note))
    words = f"campaign of {page_inputs.GROUPS:,} groups, scrolled"
    records += frames(page, SCROLL, 240, words, "page_groups_frame_ms")
    page.close()
    return records


def explored(browser: Browser, url: str, campaign: str, whole: int) -> list[Record]:
    """Measure the view of Green's functions: bytes to open, and the slider."""
    path, begin = f"#/campaigns/{campaign}/greens", len(browser.events)
    page, seconds, size = opened(browser, url, path, DRAWN)
    note = (
        f"view of Green's functions, store of {whole / 1e9:.2f} GB "
        f"({page_inputs.SOURCES} sources, {page_inputs.MODES} modes, "
        f"{NODES:,} nodes), until the map is drawn"
    )
    records = [
        record("page_greens_s", seconds, "s", None, note),
        record("page_greens_mb", size / 1e6, "MB", 5.0, f"{note}; limit"),
    ]
    time.sleep(3.0)
    # on a machine that has other work it may take longer
    read = page.until(LEFT_OUT)[1]
    note = (
        f"the same, until {read} modes are read: what the others add is less than half "
        "a step of colour"
    )
    size = _arrived(browser.events[begin:], page, data=True)
    records.append(record("page_greens_shown_mb", size / 1e6, "MB", None, note))
    words = f"slider of time over {NODES:,} nodes, no graphics processor"
    page.call("Performance.enable", timeDomain="threadTicks")
    before = used(browser, page)
    records += frames(page, SCRUB, 120, words, "page_scrub_frame_ms")
    code, whole_time = (
        1e3 * (after - first) / 120
        for after, first in zip(used(browser, page), before, strict=True)
    )
    for name, value, of in (
        ("code", code, "of the page's own code"),
        ("drawing", whole_time - code, "of the rest of the browser, all processes"),
    ):
        note = f"the slider, processor time of a frame {of}"
        records.append(record(f"page_scrub_{name}_ms", value, "ms", None, note))
    page.close()
    return records


def main() -> None:
    """Print and write the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chromium = find()
    if chromium is None:
        raise SystemExit("needs chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "store").mkdir()
        wide, complete = page_inputs.fill(folder / "page.sqlite", folder / "store")
        greens = folder / "store" / "campaigns" / complete / "greens.zarr"
        whole = page_inputs.write_store(greens, complete)
        with served(folder) as url, Browser(chromium) as browser:
            records = loads(browser, url, wide)
            records += explored(browser, url, complete, whole)
    for item in records:
        value = f"{item['value']:.4g} {item['unit']}"
        print(f"{item['metric']:24s} {value:14s} {item['note']}")
    if arguments.json:
        whole_record = document(records, device_name())
        arguments.json.write_text(json.dumps(whole_record, indent=1) + "\n")


if __name__ == "__main__":
    main()
