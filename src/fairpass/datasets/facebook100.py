"""Facebook100: friendships at three US colleges in 2005, with gender as the sensitive attribute.

| name            | nodes | features | undirected edges | label homophily | sensitive homophily | largest degree |
|-----------------|-------|----------|------------------|-----------------|---------------------|----------------|
| reed98          | 962   | 87       | 18,812           | 0.746           | 0.522               | 313            |
| amherst41       | 2,235 | 64       | 90,954           | 0.784           | 0.531               | 467            |
| johns-hopkins55 | 5,180 | 194      | 186,586          | 0.770           | 0.549               | 886            |

Nodes are people with an account at one college, edges are friendships, which say far more about the label than the
features do. The label is whether the class year is 2007, the median of each college, or later. The features are
status, major and second major, one column per value. The files are not part of the package, as they state no
licence: they are downloaded from a public source.
"""

from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.spec import CodedColumn, EdgeFile, ExpectedStatistics, GraphSpec, SourceFile

MEDIAN_CLASS_YEAR = 2007

# The columns of `local_info`, in which 0 means missing.
_COLUMNS = ["status", "gender", "major", "second_major", "dorm", "class_year", "high_school"]


def read_people(content: bytes) -> pd.DataFrame:
    """Return the table in a college's .mat file, with `is_late_class`: 1 from the median class year on, else 0."""
    codes = pd.DataFrame(_read_mat(content)["local_info"].astype(np.int64), columns=_COLUMNS).astype("Int64")
    people = codes.mask(codes == 0)
    people["is_late_class"] = (people["class_year"] >= MEDIAN_CLASS_YEAR).astype("Int64")
    return people


def read_friendships(content: bytes) -> NDArray[np.int64]:
    """Return each friendship in a college's .mat file once, as row numbers, shape [E, 2]."""
    from scipy.sparse import triu

    upper = triu(_read_mat(content)["A"], k=1).tocoo()
    return np.stack([upper.row, upper.col], axis=1).astype(np.int64)


def _read_mat(content: bytes) -> dict[str, Any]:
    from scipy.io import loadmat

    file: Any = BytesIO(content)  # scipy's type hints know paths only
    contents: dict[str, Any] = loadmat(file)
    return contents


def _college(name: str, college: str, file: SourceFile, statistics: ExpectedStatistics) -> GraphSpec:
    return GraphSpec(
        name=name,
        title=f"Facebook100, {college}",
        table=file,
        read_table=read_people,
        label=CodedColumn("is_late_class", values=(0, 1), names=("before 2007", "2007 or later")),
        sensitive=CodedColumn("gender", values=(1, 2), names=("gender 1", "gender 2")),
        sensitive_is_feature=False,
        dropped=("dorm", "class_year", "high_school"),
        one_hot=("status", "major", "second_major"),
        graph=EdgeFile(file, read=read_friendships),
        labels_for_training=500,
        statistics=statistics,
        source=f"Facebook friendships within {college}, September 2005, as published with LINKX",
        citation=(
            "Traud, A. L., Mucha, P. J., Porter, M. A. (2012). Social Structure of Facebook Networks. Physica A. "
            "https://arxiv.org/abs/1102.2166. Files: Lim, D. et al. (2021). Large Scale Learning on Non-Homophilous "
            "Graphs: New Benchmarks and Strong Simple Methods. NeurIPS."
        ),
        licence="unclear; not redistributed here",
        caveats=(
            "The label, class year 2007 or later, is this library's choice: the data set has no task of its own.",
            "The files have codes 1 and 2 for gender, and do not say which is which.",
            "The nodes are accounts of real people: do not try to identify them.",
        ),
    )


def _file(path: str, sha256: str, source: str) -> SourceFile:
    address = "https://raw.githubusercontent.com/CUAI/Non-Homophily-Large-Scale/master/data/facebook100"
    return SourceFile(f"facebook100/{path}", sha256, url=f"{address}/{source}")


REED98 = _college(
    "reed98",
    "Reed College",
    _file("Reed98.mat", "d12ec74dc8c6e237385975b976c3709555a83629a1260be693fb688e3446070e", "Reed98.mat"),
    ExpectedStatistics(
        nodes=962,
        features=87,
        undirected_edges=18_812,
        label_homophily=0.746,
        sensitive_homophily=0.522,
        max_degree=313,
        labels=(283, 534),
        groups=(504, 361),
    ),
)

AMHERST41 = _college(
    "amherst41",
    "Amherst College",
    _file("Amherst41.mat", "3108e4b2edb01be05c5a61147583a40e61012820fff7eebe621dd26018caaf00", "Amherst41.mat"),
    ExpectedStatistics(
        nodes=2_235,
        features=64,
        undirected_edges=90_954,
        label_homophily=0.784,
        sensitive_homophily=0.531,
        max_degree=467,
        labels=(896, 1_125),
        groups=(1_015, 1_017),
    ),
)

JOHNS_HOPKINS55 = _college(
    "johns-hopkins55",
    "Johns Hopkins University",
    _file(
        "Johns_Hopkins55.mat",
        "fc7243bf257155df03afbc397ab34b5f8eb8e75f40cd1603398e207a033ef50f",
        "Johns%20Hopkins55.mat",
    ),
    ExpectedStatistics(
        nodes=5_180,
        features=194,
        undirected_edges=186_586,
        label_homophily=0.770,
        sensitive_homophily=0.549,
        max_degree=886,
        labels=(1_848, 2_696),
        groups=(2_153, 2_609),
    ),
)
