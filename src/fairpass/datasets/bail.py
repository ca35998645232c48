"""Bail: who returns to prison after release, with race as the sensitive attribute.

| nodes  | features | undirected edges | label homophily | sensitive homophily | largest degree |
|--------|----------|------------------|-----------------|---------------------|----------------|
| 18,876 | 18       | 311,870          | 0.775           | 0.522               | 5,391          |

Nodes are released people, edges join people with similar records. 38 % return; 51 % are recorded as white.
The table is not part of the package, as its licence is unclear: it is downloaded from its public source.
"""

from fairpass.datasets.spec import CodedColumn, ExpectedStatistics, GraphSpec, SimilarityRecipe, SourceFile

BAIL = GraphSpec(
    name="bail",
    title="Bail (recidivism)",
    table=SourceFile(
        "bail.csv",
        sha256="11a7c62be2b7aed7cb069624789755d5f57acc8b69580564e2401b084e2d5faf",
        url="https://raw.githubusercontent.com/chirag126/nifty/main/dataset/bail/bail.csv",
    ),
    label=CodedColumn("RECID", values=(0, 1), names=("no return", "return to prison")),
    sensitive=CodedColumn("WHITE", values=(0, 1), names=("not white", "white")),
    split="balanced",
    labels_for_training=100,
    graph=SimilarityRecipe(threshold=0.6),
    published_scale="minmax",
    statistics=ExpectedStatistics(
        nodes=18_876,
        features=18,
        undirected_edges=311_870,
        label_homophily=0.775,
        sensitive_homophily=0.522,
        max_degree=5_391,
        labels=(11_772, 7_104),
        groups=(9_317, 9_559),
    ),
    source="North Carolina prison releases of 1978 and 1980, in the form published with NIFTY",
    citation=(
        "Table and graph: Agarwal, C., Lakkaraju, H., Zitnik, M. (2021). "
        "Towards a Unified Framework for Fair and Stable Graph Representation Learning. UAI."
    ),
    licence="unclear; not redistributed here",
    caveats=(
        "The records are of people released from prison in North Carolina in 1978 and 1980, not of "
        "defendants released on bail in 1990-2009 as the literature says.",
        "TIME all but gives the label away: TIME > 0 agrees with RECID in 99.4 % of the rows.",
        "PRIORS is -9 in 1,347 rows, all with FILE = 3: a code for a missing value, used as a number.",
    ),
)
