"""What a user does in the view of Green's functions."""

from __future__ import annotations


def choose(shown, label, value):
    """Choose from a list or type into a field, by its label, as a user does."""
    shown.run(
        "(() => { const label = [...document.querySelectorAll('.choices label, "
        f".place label')].find((l) => l.textContent.startsWith({label!r}));"
        "const field = label.querySelector('select, input');"
        f"field.value = {str(value)!r}; field.dispatchEvent(new Event('change')); }})()"
    )


def click(shown, along, down):
    """Click on the map at parts of its width and height."""
    box = shown.run(
        "(() => { const m = document.querySelector('.map'); m.scrollIntoView();"
        "const b = m.getBoundingClientRect();"
        "return [b.x, b.y, b.width, b.height]; })()"
    )
    x, y = box[0] + along * box[2], box[1] + down * box[3]
    for kind in ("mousePressed", "mouseReleased"):
        shown.call(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button="left", clickCount=1,
        )  # fmt: skip
