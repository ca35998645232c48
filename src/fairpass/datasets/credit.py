"""Credit: who will pay the next credit card bill, with age under 25 as the sensitive attribute.

| nodes  | features | undirected edges | label homophily | sensitive homophily | largest degree |
|--------|----------|------------------|-----------------|---------------------|----------------|
| 30,000 | 13       | 137,377          | 0.642           | 0.879               | 536            |

Nodes are card holders, edges join holders with similar payments. 78 % do not default; 9 % are under 25.
"""

from fairpass.datasets.spec import CodedColumn, ExpectedStatistics, GraphSpec, SimilarityRecipe, SourceFile

CREDIT = GraphSpec(
    name="credit",
    title="Credit Default",
    table=SourceFile("credit.csv", sha256="5d7a93f25a09dd1648c78b5e0c6a883ca832ee88259d89dfe1062e8c848bfe5d"),
    label=CodedColumn("NoDefaultNextMonth", values=(0, 1), names=("default", "no default")),
    sensitive=CodedColumn("Age", values=(0, 1), names=("25 or older", "under 25")),
    dropped=("Single",),
    split="balanced",
    labels_for_training=6_000,
    graph=SimilarityRecipe(threshold=0.7),
    published_scale="minmax",
    statistics=ExpectedStatistics(
        nodes=30_000,
        features=13,
        undirected_edges=137_377,
        label_homophily=0.642,
        sensitive_homophily=0.879,
        max_degree=536,
        labels=(6_636, 23_364),
        groups=(27_315, 2_685),
    ),
    source="UCI Default of Credit Card Clients, in the form published with NIFTY",
    citation=(
        "Yeh, I. (2016). Default of Credit Card Clients. UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C55S3H. Form and graph: Agarwal, C., Lakkaraju, H., Zitnik, M. (2021). "
        "Towards a Unified Framework for Fair and Stable Graph Representation Learning. UAI."
    ),
    licence="CC BY 4.0",
    caveats=(
        "MonthsWithZeroBalanceOverLast6Months counts the months in which more was paid than billed.",
        "The graph is taken over the raw columns, where the amounts outweigh all else. A denser graph of "
        "this table (1.4 million edges, from standardised amounts) also circulates; results do not compare.",
    ),
)
