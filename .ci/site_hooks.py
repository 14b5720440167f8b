"""What the documentation site adds to docs/: README, examples, references, drawings.

In the repository, pages link to code and folders beside docs/. On the site, which holds
no code, such a link becomes the path alone; one that leads nowhere ends the build.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the first page, and the page of each example."""
    for path in (ROOT / "README.md", *sorted(ROOT.glob("examples/*/README.md"))):
        text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, _page(path), content=_moved(text, path)))
    for path in sorted((ROOT / "build/reference").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, path.name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links that leave docs/."""
    source = page.file.abs_src_path
    moved = markdown if source is None else _moved(markdown, Path(source))
    return _MERMAID.sub(lambda m: _drawing(m[1], page.file.src_uri), moved)


def _drawing(text: str, page: str) -> str:
    """Return the image of a block of Mermaid, as .ci/drawings.py has drawn it."""
    name = f"images/drawings/{hashlib.sha256(text.encode()).hexdigest()[:12]}.svg"
    if not (ROOT / "docs" / name).exists():
        raise PluginError(f"{page}: a drawing is out of date; run .ci/drawings.py")
    return f"![Drawing]({os.path.relpath(name, Path(page).parent)})"


def _page(path: Path) -> str:
    """Where a file of the repository stands on the site, if it does."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    if path.match("examples/*/README.md"):
        return f"examples/{path.parent.name}.md"
    return ""


def _moved(text: str, source: Path) -> str:
    """Return a page with its links as they are on the site.

    Raises
    ------
    PluginError
        A link leads nowhere.
    """
    here = Path(_page(source)).parent

    def replace(match: re.Match[str]) -> str:
        image, words, target, part = match.groups()
        if ":" in target or target.startswith("/"):
            return match.group()
        path = (source.parent / target).resolve()
        if not path.exists():
            raise PluginError(f"{source.relative_to(ROOT)}: no {target}")
        page = _page(path)
        if page and path.is_file():
            return f"{image}[{words}]({os.path.relpath(page, here)}{part or ''})"
        name = path.relative_to(ROOT).as_posix()
        return f"`{name}`" if words in (name, target) else f"{words} (`{name}`)"

    return _LINK.sub(replace, text)
