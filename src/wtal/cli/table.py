"""The one way in which commands print tables: plain text in which no value is ever cut off."""

import shutil
import sys
from collections.abc import Container, Sequence


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    left: Container[int] = (0,),
    stderr: bool = False,
) -> None:
    """Print a table; the columns that `left` numbers are text, to the left, and the others numbers, to the right.

    A pipe or a log gets the full width. In a terminal that is too narrow, the columns that do not fit follow below, as
    a table of their own that begins with the first column again.
    """
    out = sys.stderr if stderr else sys.stdout
    width = shutil.get_terminal_size().columns if out.isatty() else None
    if title:
        print(printable(title), file=out)
    print("\n\n".join(table_text(head, rows, left=left, width=width)), file=out)


def table_text(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Container[int] = (0,), width: int | None = None
) -> list[str]:
    """The table as one text, or as several that are at most `width` wide wherever one column fits into it.

    >>> print("\\n--\\n".join(table_text(["tIoU", "0.1", "0.2"], [["mAP", "66.70", "5.00"]], width=12)))
    tIoU    0.1
    ───────────
    mAP   66.70
    --
    tIoU   0.2
    ──────────
    mAP   5.00
    """
    from rich.cells import cell_len

    cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    blocks: list[list[int]] = [[0]]
    for column in range(1, len(widths)):
        needed = sum(widths[other] + 2 for other in blocks[-1]) + widths[column]
        if width is not None and needed > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(column)

    def line(row: Sequence[str], columns: Sequence[int]) -> str:
        padded = []
        for column in columns:
            blank = " " * (widths[column] - cell_len(row[column]))
            padded.append(row[column] + blank if column in left else blank + row[column])
        return "  ".join(padded).rstrip()

    texts = []
    for columns in blocks:
        rule = "─" * (sum(widths[column] + 2 for column in columns) - 2)
        texts.append("\n".join([line(cells[0], columns), rule, *(line(row, columns) for row in cells[1:])]))
    return texts


def printable(text: str) -> str:
    """The text without characters that would steer a terminal or break the line."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
