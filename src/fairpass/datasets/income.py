"""Income: who earns more than 50,000 dollars a year, with race as the sensitive attribute.

| nodes  | features | undirected edges | label homophily | sensitive homophily | largest degree |
|--------|----------|------------------|-----------------|---------------------|----------------|
| 14,821 | 14       | 42,831           | 0.731           | 0.864               | 648            |

Nodes are people of the US census of 1994, edges join people with similar answers. 22 % earn more; 32 % are Black.
The files are not part of the package, as the edge file states no licence: they are downloaded from a public source.
"""

from fairpass.datasets.spec import CodedColumn, EdgeFile, ExpectedStatistics, GraphSpec, SourceFile

_ADDRESS = "https://raw.githubusercontent.com/LuoRenqiang/FUGNN/main/data/ori/income"

INCOME = GraphSpec(
    name="income",
    title="Income (UCI Adult)",
    table=SourceFile(
        "income/income.csv",
        sha256="eba651aa5919a361985a5971f59acdd95ff022254493a505f8b4fe74008deb82",
        url=f"{_ADDRESS}/income.csv",
    ),
    label=CodedColumn("income", values=(0, 1), names=("at most 50K", "over 50K")),
    sensitive=CodedColumn("race", values=(0, 1), names=("white", "Black")),
    labels_for_training=1_000,
    graph=EdgeFile(
        SourceFile(
            "income/income_edges.txt",
            sha256="4922cf9b602a0099a89dca6ad9186f39121d0d09859686900cdfaf1f6c8e1a8a",
            url=f"{_ADDRESS}/income_edges.txt",
        )
    ),
    statistics=ExpectedStatistics(
        nodes=14_821,
        features=14,
        undirected_edges=42_831,
        label_homophily=0.731,
        sensitive_homophily=0.864,
        max_degree=648,
        labels=(11_611, 3_210),
        groups=(10_136, 4_685),
    ),
    source="UCI Adult with the edges made for BIND, in the form published with FUGNN",
    citation=(
        "Becker, B., Kohavi, R. (1996). Adult. UCI Machine Learning Repository. https://doi.org/10.24432/C5XW20. "
        "Graph: Dong, Y., Wang, S., Ma, J., Liu, N., Li, J. (2023). Interpreting Unfairness in Graph Neural Networks "
        "via Training Node Attribution. AAAI."
    ),
    licence="table CC BY 4.0, edge file unclear; not redistributed here",
    caveats=(
        "Categories such as occupation and native-country are used as numbers: their alphabetical codes.",
        "fnlwgt is the census's sampling weight, not a property of the person. It is a feature here, and in this "
        "choice of rows it tells much about race (correlation 0.51).",
        "All Black people of UCI Adult are in the table, but only a part of the white ones: the shares of the "
        "groups are not those of the census.",
    ),
)
