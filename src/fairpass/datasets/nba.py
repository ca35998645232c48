"""NBA: which basketball players earn more than the median, with nationality as the sensitive attribute.

| nodes | features | undirected edges | label homophily | sensitive homophily | largest degree |
|-------|----------|------------------|-----------------|---------------------|----------------|
| 403   | 96       | 10,621           | 0.536           | 0.724               | 220            |

Nodes are players of the season 2016-17, edges are relations on Twitter. Of 313 known salaries, 51 % are above the
median; 27 % of the players are from overseas. The files are not part of the package, as they state no licence: they
are downloaded from their public source.
"""

from fairpass.datasets.spec import CodedColumn, EdgeFile, ExpectedStatistics, GraphSpec, SourceFile

_ADDRESS = "https://raw.githubusercontent.com/EnyanDai/FairGNN/main/dataset/NBA"

NBA = GraphSpec(
    name="nba",
    title="NBA players",
    table=SourceFile(
        "nba/nba.csv",
        sha256="fe295195cff01f20b785fe9de1e24062123cb146bdae080ce8b3ea8315d45b80",
        url=f"{_ADDRESS}/nba.csv",
    ),
    label=CodedColumn("SALARY", values=(0, 1), names=("at most median", "above median")),
    sensitive=CodedColumn("country", values=(0, 1), names=("US", "overseas")),
    dropped=("user_id",),
    labels_for_training=100,
    graph=EdgeFile(
        SourceFile(
            "nba/nba_relationship.txt",
            sha256="14c73245e5d6b6457cce7504e2bb0ded6b81155e25bf0e7d23793df7c01b4873",
            url=f"{_ADDRESS}/nba_relationship.txt",
        ),
        id_column="user_id",
    ),
    statistics=ExpectedStatistics(
        nodes=403,
        features=96,
        undirected_edges=10_621,
        label_homophily=0.536,
        sensitive_homophily=0.724,
        max_degree=220,
        labels=(154, 159),
        groups=(296, 107),
    ),
    source="NBA player statistics of 2016-17 and relations on Twitter, as published with FairGNN",
    citation=(
        "Dai, E., Wang, S. (2021). Say No to the Discrimination: Learning Fair Graph Neural Networks with Limited "
        "Sensitive Attribute Information. WSDM. https://arxiv.org/abs/2009.01454"
    ),
    licence="unclear; not redistributed here",
    caveats=(
        "The test split has fewer than 80 nodes: a difference of ten percentage points is within chance.",
        "The salary of 90 players is unknown; they stay in the graph, without a label.",
        "FairGNN draws its split without stratification, so results on its splits do not compare exactly.",
    ),
)
