"""Draw the Mermaid blocks of the pages, so that the site shows them without a script.

    npm pack mermaid@12.3.0 && tar xzf mermaid-12.3.0.tgz
    python .ci/drawings.py package/dist/mermaid.min.js

Each block becomes docs/images/drawings/DIGEST.svg, named by its text: a block that was
changed has no drawing until this was run again, which the site and a test notice.
Needs chromium.
"""

import hashlib
import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/images/drawings"
BLOCK = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
# labels as SVG text: images may not hold HTML. Drawn once, on white, for both themes
PAGE = """<!doctype html><meta charset="utf-8"><pre id="out"></pre>
<script src="{library}"></script><script>
mermaid.initialize({{startOnLoad: false, theme: "neutral", htmlLabels: false,
  fontFamily: "sans-serif", flowchart: {{htmlLabels: false, useMaxWidth: false}}}});
mermaid.render("drawing", {text}).then(({{ svg }}) => {{
  const root = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  root.style.background = "white";
  const text = new XMLSerializer().serializeToString(root);
  document.getElementById("out").textContent = text;
}});</script>"""


def name(text: str) -> str:
    """Return the name of a block's drawing."""
    return hashlib.sha256(text.encode()).hexdigest()[:12] + ".svg"


def draw(text: str, library: Path) -> str:
    """Return a block as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(
            PAGE.format(library=library.resolve().as_uri(), text=json.dumps(text))
        )
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                   f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000",
                   "--dump-dom", page.as_uri()]  # fmt: skip
        shown = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r'<pre id="out">(.+?)</pre>', shown.stdout, re.DOTALL)
    if found is None:
        sys.exit(f"not drawn:\n{text}")
    # what only its own scripts read
    return re.sub(r' data-[\w-]+="[^"]*"', "", html.unescape(found[1]))


def main() -> None:
    """Draw what has no drawing yet, and remove what no page shows."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    blocks = {name(b): b for page in pages for b in BLOCK.findall(page.read_text())}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.svg"):
        if old.name not in blocks:
            old.unlink()
    for file, text in blocks.items():
        if not (FOLDER / file).exists():
            (FOLDER / file).write_text(draw(text, Path(sys.argv[1])) + "\n")


if __name__ == "__main__":
    main()
