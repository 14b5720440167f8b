"""The page for whom it must not move, and for whom there is no mouse."""

from __future__ import annotations

import pytest
from test_page import count, submit

# what moves by itself, also beside an element
MOVING = """[...document.querySelectorAll('*')].flatMap((element) =>
  [null, '::before', '::after'].map((part) => getComputedStyle(element, part))
    .filter((style) => style.animationName !== 'none' && style.content !== 'none')
    .map((style) => `${element.className}: ${style.animationName}`))"""


@pytest.mark.parametrize("still", [False, True])
def test_nothing_moves_where_reduced_motion_is_asked_for(page, service, worker, still):
    worker.gate.clear()
    shown = page(f"#/campaigns/{submit(service)}", still=still)
    shown.until(f"{count('h1 .building, h1 .running')} > 0")
    moving = shown.run(MOVING)
    assert (moving == []) is still, moving


def press(shown, key, modifiers=0):
    """Press a key as a keyboard does."""
    codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}
    for kind in ("keyDown", "keyUp"):
        shown.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key,
            windowsVirtualKeyCode=codes[key], modifiers=modifiers,
            **({"text": "\r"} if (key, kind) == ("Enter", "keyDown") else {}),
        )  # fmt: skip


def test_a_group_is_opened_and_closed_by_keys_alone(page, service):
    shown = page(f"#/campaigns/{submit(service)}")
    shown.until(f"{count('h1 .badge.complete')} > 0")
    shown.until(f"{count('.grid button')} > 1")
    stops = 0
    while not shown.run("document.activeElement.matches('.grid button')"):
        press(shown, "Tab")
        stops += 1
        assert stops < 30, "Tab never comes to the groups"
    press(shown, "ArrowRight")
    press(shown, "Enter")
    shown.until("document.querySelectorAll('.grid button')[1].ariaPressed === 'true'")
    press(shown, "Escape")
    shown.until(
        "document.querySelectorAll('.grid button[aria-pressed=true]').length === 0"
    )
    # the next Tab leaves the grid, however many groups it has
    press(shown, "Tab")
    assert not shown.run("document.activeElement.matches('.grid button')")


def test_groups_that_are_read_again_leave_the_keyboard_where_it_is(page):
    shown = page("#/")
    shown.until(f"{count('main')} > 0")
    found = shown.run(
        """import('/dashboard/elements/group-grid.js').then(({ GroupGrid }) => {
          const grid = new GroupGrid(() => {});
          document.body.append(grid.element);
          const groups = [0, 1, 2].map((index) => ({ index, state: 'running' }));
          grid.show(groups);
          const square = grid.squares.get(1);
          square.focus();
          grid.show(groups.map((group) => ({ ...group, state: 'accepted' })));
          const same = document.activeElement === square;
          grid.show([...groups, { index: 3, state: 'waiting' }]);
          return [same, square.className, grid.squares.size];
        })"""
    )
    assert found == [True, "accepted", 4]
