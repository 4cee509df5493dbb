"""Read the columns of a CSV file, and find the lines that messages name.

pandas counts rows from 0, without the header and without empty lines. Messages name the line that an editor shows.
"""

from __future__ import annotations

import contextlib
import csv
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

IN_RUNS = "computes"  # a user's own file has the fingerprint of its bytes, not of its arrays


def csv_table(path: Path) -> dict[str, Any]:
    """Return the columns of a table by name; a first row with any text is a header.

    A column of numbers and words contains words. Raises UserError, with the line, if a row has too few or too many
    fields, if a quote is not closed, or if something else than commas separates the columns.
    """
    import pandas as pd

    try:
        first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
        header = _is_header(first)
        table = _read(path, header=None, skiprows=int(header))
    except pd.errors.EmptyDataError:
        raise UserError(f"{path}: has no rows of numbers") from None
    except pd.errors.ParserError as error:
        if message := _open_quote(path, str(error)) or _separated(path) or _uneven(path):
            raise UserError(message) from None
        raise
    # pandas pads short rows, and makes row names of extra fields
    if len(first) == 1 and (message := _separated(path)):
        raise UserError(message)
    suspect = table.shape[1] != len(first) or table[len(first) - 1].isna().any()
    if suspect and (message := _uneven(path)):
        raise UserError(message)
    for column in table:  # pandas reads a long file in parts, and a column can be numbers in one and words in another
        if pd.api.types.infer_dtype(table[column]).startswith("mixed"):
            table[column] = _read(path, header=None, skiprows=int(header), usecols=[column], dtype=str)[column]
    names = _distinct(path, [cell.strip() for cell in first]) if header else map(str, range(len(first)))
    return {name: table[column].to_numpy() for column, name in enumerate(names)}


def line_of(path: Path, row: int) -> int | None:
    """Return the line of a row of the table, which ``csv_table`` counts from 0; None if the file cannot be read."""
    header = False
    with contextlib.suppress(OSError, csv.Error):
        for place, (line, cells) in enumerate(_rows(path)):
            header = _is_header(cells) if place == 0 else header
            if place == row + header:
                return line
    return None


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read(path: Path, **options: Any) -> pd.DataFrame:
    """Return what pandas reads, with numbers rounded correctly, and without its warnings."""
    import pandas as pd

    # From pandas 3.1 on this is the only way of reading numbers, and the option is deprecated.
    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    exact: dict[str, Any] = {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        return pd.DataFrame(pd.read_csv(path, **options, **exact))


def _is_header(cells: list[str]) -> bool:
    return any(cell and not is_number(cell) for cell in cells)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that pandas reads, each with the line in which it begins, counted from 1."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        reader = csv.reader(stream)
        line = 1
        for cells in reader:
            if len(cells) > 1 or (cells and (not cells[0] or cells[0].strip())):
                yield line, cells
            line = reader.line_num + 1


def _uneven(path: Path) -> str:
    """Return a message about the first row that has not as many fields as the first row of the file, or ''."""
    with contextlib.suppress(StopIteration, csv.Error):
        rows = _rows(path)
        width = len(next(rows)[1])
        line, fields = next((line, len(cells)) for line, cells in rows if len(cells) != width)
        below = Counter(len(cells) for _, cells in rows)
        more = below.total() - below[width]
        where, repair = f"line {line:,} has {fields:,}", _EXTRA if fields > width else _MISSING
        if more and line == 2 and set(below) == {fields}:
            where, repair = f"every row below has {fields:,}", _NAMES
        elif more:
            where += f" ({more:,} more {'line differs' if more == 1 else 'lines differ'})"
        return f"{path}: the first row has {width:,} field{'s' * (width != 1)}, but {where}; {repair}"
    return ""


def _separated(path: Path) -> str:
    """Return a message about a file whose first two rows have as many semicolons or tabs, and no comma first, or ''."""
    with contextlib.suppress(StopIteration, csv.Error):
        rows = _rows(path)
        first, second = (",".join(cells) for _, cells in (next(rows), next(rows)))
        for sign in (";", "\t"):
            if "," not in first and 0 < first.count(sign) == second.count(sign):
                return f"{path} separates its columns by {sign!r}; separate them by commas, and write 1.5, not 1,5"
    return ""


_MISSING = "add the missing fields (a comma for an empty one), or remove the line"
_EXTRA = "remove the extra fields, or put text that contains a comma in quotes"
_NAMES = "write one name per column in the first row"


def _open_quote(path: Path, error: str) -> str:
    """Return a message about the row whose quote is not closed, if this is the error; otherwise ''."""
    if "inside string" not in error:
        return ""
    with contextlib.suppress(csv.Error):
        *_, (line, _) = _rows(path)
        return f'{path}: a quote (") that opens in line {line:,} is not closed; close or remove it'
    return ""


def _distinct(path: Path, names: list[str]) -> list[str]:
    """Return names of columns; those that occur more than once get the number of the column."""
    repeated = {name for name in names if names.count(name) > 1}
    if numbers := sorted(filter(is_number, repeated)):
        text = next(name for name in names if name and not is_number(name))
        raise UserError(f"{path}: '{text[:40]}' in its first row is not a number, but {numbers[0]} occurs twice there")
    return [f"{name} (column {i})" if name in repeated else name for i, name in enumerate(names, start=1)]
