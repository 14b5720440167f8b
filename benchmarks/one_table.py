"""The two uses of a script whose record is a table of a page: measure, or write it."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from space_error import write_table

from afterslip_common.record import Record, write_records


def run(
    description: str | None,
    marks: tuple[str, str],
    table: Callable[[dict], list[str]],
    measure: Callable[[], list[Record]],
) -> None:
    """Write the record, or with --docs the table that it makes.

    Parameters
    ----------
    marks : of the page, which the table stands between.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--commit")
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.docs is not None:
        write_table(options.docs, marks, table(json.loads(options.json.read_text())))
        return
    write_records(options.json, measure(), options.commit)
