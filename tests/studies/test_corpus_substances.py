"""Tables and whitened errors of the substances against values written by hand."""

import numpy as np

from studies.corpus import substances


def test_only_substances_with_all_properties_remain(tmp_path):
    (tmp_path / "a.tsv").write_text("CAS\tTc\tPc\n50-00-0\t400\t7\n64-17-5\t514\t6\n71-43-2\t\t5\n")
    (tmp_path / "b.tsv").write_text("CAS\tTb\n64175\t351\n71432\t353\n50000\t-3\n")
    table = substances.table(tmp_path, (("a.tsv", ("Tc", "Pc")), ("b.tsv", ("Tb",))))
    assert table.index.tolist() == [64175]
    np.testing.assert_allclose(np.exp(table.to_numpy()), [[514, 6, 351]])


def test_whitened_errors_are_uncorrelated_with_variance_one():
    rng = np.random.default_rng(10)
    errors = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 3))
    np.testing.assert_allclose(
        np.cov((errors @ substances.whitening(errors)).T), np.eye(3), atol=0.1
    )
