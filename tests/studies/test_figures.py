"""The command of docs/open_set.md writes its tables, with the true rates among all characters."""

import re

import pytest

import classex_bayes as cb
from studies.figures import open_set


@pytest.mark.slow
def test_tables_of_the_page(monkeypatch, tmp_path):
    few, written = open_set.small_pilots, {}
    monkeypatch.setattr(open_set, "FIGURES", tmp_path)
    monkeypatch.setattr(open_set, "small_pilots", lambda *_, n_pilots: few(201, (60,), 2))
    monkeypatch.setattr(open_set, "write_parts", lambda page, parts: written.update(parts))
    open_set.main()
    everything = cb.load_glyphs().task()
    for k, threshold, *_, fpir, _, _, fnir in re.findall(
        r"^\| ([\d,]+) " + r"\| (.*?) " * 7 + r"\|$", written["rates"], flags=re.MULTILINE
    )[:2]:
        exact = cb.open_set.open_set_rates(everything, int(k.replace(",", "")), float(threshold))
        assert abs(exact["fpir"].item() - float(fpir)) < 1e-4
        assert abs(exact["fnir"].item() - float(fnir)) < 1e-3
