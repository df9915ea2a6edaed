"""Published numbers of the papers, and numbers of the R package ClassEx if they differ."""

import pandas as pd

FACTORS = (2, 4, 10, 20)


def table1() -> pd.DataFrame:
    """Largest RMSE over noise levels in jmlr2018, Table 1.

    The table is indexed by (k1, estimator) and has a column for each factor k2 / k1.
    """
    rmse = {
        (500, "ClassExReg"): (0.032, 0.044, 0.073, 0.098),
        (500, "KDE(bcv)"): (0.090, 0.088, 0.079, 0.076),
        (500, "KDE(ucv)"): (0.067, 0.059, 0.051, 0.045),
        (5000, "ClassExReg"): (0.009, 0.015, 0.032, 0.054),
        (5000, "KDE(bcv)"): (0.038, 0.028, 0.035, 0.065),
        (5000, "KDE(ucv)"): (0.028, 0.019, 0.053, 0.086),
    }
    index = pd.MultiIndex.from_tuples(rmse, names=["k1", "estimator"])
    return pd.DataFrame(list(rmse.values()), index=index, columns=pd.Index(FACTORS, name="factor"))


def table2() -> pd.DataFrame:
    """RMSE on predicting the accuracy on 1672 faces in jmlr2018, Table 2.

    The faces are Labeled Faces in the Wild, embedded by OpenFace. The table is indexed by
    (k1, estimator). Its columns are "rmse" over 100 pilots and its standard error "se".
    """
    values = {
        (100, "ClassExReg"): (0.113, 0.002),
        (100, "KDE(bcv)"): (0.053, 0.001),
        (100, "KDE(ucv)"): (0.082, 0.001),
        (200, "ClassExReg"): (0.058, 0.002),
        (200, "KDE(bcv)"): (0.037, 0.001),
        (200, "KDE(ucv)"): (0.057, 0.001),
        (400, "ClassExReg"): (0.050, 0.001),
        (400, "KDE(bcv)"): (0.024, 0.001),
        (400, "KDE(ucv)"): (0.035, 0.001),
    }
    index = pd.MultiIndex.from_tuples(values, names=["k1", "estimator"])
    return pd.DataFrame(list(values.values()), index=index, columns=["rmse", "se"])


def table3() -> pd.DataFrame:
    """Accuracies extrapolated for Telugu characters in jmlr2018, Table 3.

    The table is indexed by (classifier, k1, k2). Its columns are the "truth" and two predictions of
    ClassExReg: "printed", from a script that chose the bandwidth on wrongly selected scores, and
    "R package", the mean over ten seeds of ClassEx; it is missing if the scores are not available.
    """
    values = {
        ("deepslim", 20, 100): (0.9908, 0.9905, 0.9901),
        ("logistic", 20, 100): (0.8490, 0.8980, 0.9122),
        ("svm", 20, 100): (0.7582, 0.8192, 0.8658),
        ("deepslim", 20, 400): (0.9860, 0.9614, 0.9853),
        ("logistic", 20, 400): (0.7107, 0.8824, 0.8672),
        ("svm", 20, 400): (0.5452, 0.6725, 0.8037),
        ("deepslim", 100, 400): (0.9860, 0.9837, None),
        ("logistic", 100, 400): (0.7107, 0.7214, 0.7356),
        ("svm", 100, 400): (0.5452, 0.5969, 0.6080),
    }
    index = pd.MultiIndex.from_tuples(values, names=["classifier", "k1", "k2"])
    columns = ["truth", "printed", "R package"]
    return pd.DataFrame(list(values.values()), index=index, columns=columns, dtype=float)


def telugu2016() -> pd.DataFrame:
    """Accuracies on 400 Telugu characters, extrapolated from 20, in nips2016, section 5.

    The training runs are not those of Table 3: accuracies on 20 classes differ. The table is
    indexed by classifier. Its columns are "at 20" and "at 400" (measured), "EXP" (U-statistic and
    mixed exponential), "CON" (constrained pseudolikelihood) and "HD" (high-dimensional).
    """
    values = {
        "logistic": (0.922, 0.711, 0.844, 0.721, 0.686),
        "svm": (0.860, 0.545, 0.737, 0.575, 0.546),
        "epsilon-NN": (0.880, 0.591, 0.903, 0.608, 0.839),
    }
    columns = ["at 20", "at 400", "EXP", "CON", "HD"]
    table = pd.DataFrame(list(values.values()), index=list(values), columns=columns)
    return table.rename_axis("classifier")
