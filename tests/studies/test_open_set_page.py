"""The command of docs/open_set.md: its tables have places on the page, and true rates."""

import re

import pytest

import classex_bayes as cb
from studies.figures import open_set
from studies.pages import DOCS


@pytest.mark.slow
def test_tables_of_the_page_are_those_of_the_command(monkeypatch, tmp_path):
    few, written = open_set.small_pilots, {}
    monkeypatch.setattr(open_set, "FIGURES", tmp_path)
    monkeypatch.setattr(open_set, "small_pilots", lambda *_, n_pilots: few(201, (60,), 2))
    monkeypatch.setattr(open_set, "write_parts", lambda page, parts: written.update(parts))
    open_set.main()
    page = (DOCS / "open_set.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"<!-- ([\w ]+) -->\n(.+?)<!-- end of \1 -->", page, flags=re.DOTALL))
    heads = [
        {name: re.sub(r"[\d.,]+", "", text.splitlines()[0]) for name, text in found.items()}
        for found in (written, {name: parts[name] for name in written})
    ]
    assert heads[0] == heads[1]
    # No number of a table stands there by hand.
    outside = re.sub(r"<!-- (?!end)(.+?) -->\n.+?<!-- end of \1 -->", "", page, flags=re.DOTALL)
    assert not re.search(r"^\| [\d,]+ \|", outside, flags=re.MULTILINE)
    # The rates among all characters, at the printed thresholds.
    everything = cb.load_glyphs().task()
    for k, threshold, *_, fpir, _, _, fnir in re.findall(
        r"^\| ([\d,]+) " + r"\| (.*?) " * 7 + r"\|$", written["rates"], flags=re.MULTILINE
    )[:2]:
        exact = cb.open_set.open_set_rates(everything, int(k.replace(",", "")), float(threshold))
        assert abs(exact["fpir"].item() - float(fpir)) < 1e-4
        assert abs(exact["fnir"].item() - float(fnir)) < 1e-3
    certain, half = re.search(r"\| 60 \| (.*?) \| (.*?) \|", written["small pilots"]).groups()
    assert float(certain.split(" / ")[0]) <= float(half.split(" / ")[0])
    assert float(certain.split(" / ")[1]) >= float(half.split(" / ")[1])
