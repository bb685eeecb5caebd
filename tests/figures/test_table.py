"""Tables say the same in every form."""

import csv
import io

import pytest

from wtal.figures.table import Column, Measure, Table, as_csv, count, latex, markdown, measured, write_tables

TABLE = Table(
    "scores",
    "Scores | 100%",
    (Column("run"), Column(".5", "mAP"), Column("AVG", "mAP"), Column("note")),
    (
        ("a|b", Measure((40.0, 42.0)), Measure((30.04,)), "x & y"),
        ("c_d", None, Measure((31.0, 31.0, 34.0)), None),
        ("Δ", count(12), None, "best"),
    ),
    strong=frozenset({2}),
    sections={1: "second part", 2: ""},
)


def test_spread_is_the_samples_and_one_value_has_none():
    assert Measure((1.0, 3.0)).spread == pytest.approx(2**0.5)
    assert Measure((1.0,)).spread is None
    assert measured([None, 2.0, None]) == Measure((2.0,))
    assert measured([None]) is None
    assert str(count(7)) == "7"


def test_markdown_keeps_its_columns_whatever_the_cells_hold():
    lines = markdown(TABLE).splitlines()
    assert [line.replace("\\|", "").count("|") for line in lines] == [5] * len(lines)
    assert lines[0] == "| run | mAP .5 | mAP AVG | note |"
    assert "41.0 ± 1.4" in lines[2]
    assert lines[3].startswith("| *second part* |")
    assert "**12**" in lines[-1]


def test_latex_escapes_groups_and_parts():
    text = latex(TABLE)
    assert r"a|b & $41.0 \pm 1.4$ & $30.0$ & x \& y \\" in text
    assert r"c\_d & -- & $32.0 \pm 1.7$ & -- \\" in text
    assert r"\multicolumn{2}{c}{mAP}" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"\multicolumn{4}{l}{\emph{second part}} \\" in text
    assert r"\textbf{$\Delta$}" in text.replace(r"$\mathbf{\Delta}$", r"\textbf{$\Delta$}")
    assert r"\caption{Scores | 100\%}" in text
    assert text.count("{") == text.count("}")


def test_csv_gives_numbers_with_their_deviation_and_count():
    rows = list(csv.DictReader(io.StringIO(as_csv(TABLE))))
    assert rows[0]["mAP .5"] == "41.0"
    assert float(rows[0]["mAP .5 sd"]) == pytest.approx(2**0.5, abs=1e-4)
    assert (rows[0]["mAP AVG"], rows[0]["mAP AVG sd"], rows[0]["mAP AVG n"]) == ("30.04", "", "1")
    assert rows[1]["mAP .5"] == ""
    assert len({len(row) for row in rows}) == 1


def test_a_row_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="a row has 1 cells under 2 headings"):
        Table("t", "T", (Column("a"), Column("b")), (("x",),))


def test_tables_are_written_in_all_forms(tmp_path):
    paths = write_tables(tmp_path, [TABLE])
    assert [path.name for path in paths] == ["scores.md", "scores.tex", "scores.csv"]
    assert (tmp_path / "scores.md").read_text() == markdown(TABLE) + "\n"
