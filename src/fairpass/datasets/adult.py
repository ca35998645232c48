"""Adult: who earns more than 50,000 dollars a year, with sex as the sensitive attribute.

| nodes  | features | undirected edges | label homophily | sensitive homophily | largest degree |
|--------|----------|------------------|-----------------|---------------------|----------------|
| 12,000 | 101      | 82,207           | 0.769           | 0.871               | 49             |

Nodes are people of the US census of 1994, edges join each to the 10 people most like them. 25 % earn more; 67 % are
male. Part of the package: 12,000 of the 45,222 complete rows of UCI Adult, drawn at random.
"""

from fairpass.datasets.spec import CodedColumn, ExpectedStatistics, GraphSpec, NeighbourRecipe, SourceFile

ADULT = GraphSpec(
    name="adult",
    title="Adult (census income)",
    table=SourceFile("adult.csv", sha256="e129a176ee9d859147fc8ebc1b18f59f02267318942ddca046c0cdbadefcdb88"),
    label=CodedColumn("income", values=("<=50K", ">50K"), names=("at most 50K", "over 50K")),
    sensitive=CodedColumn("sex", values=("Female", "Male"), names=("female", "male")),
    one_hot=("workclass", "education", "marital-status", "occupation", "relationship", "race", "native-country"),
    labels_for_training=1_000,
    graph=NeighbourRecipe(neighbours=10),
    statistics=ExpectedStatistics(
        nodes=12_000,
        features=101,
        undirected_edges=82_207,
        label_homophily=0.769,
        sensitive_homophily=0.871,
        max_degree=49,
        labels=(8_963, 3_037),
        groups=(3_929, 8_071),
    ),
    source="12,000 rows of UCI Adult, drawn at random; the graph is this library's",
    citation="Becker, B., Kohavi, R. (1996). Adult. UCI Machine Learning Repository. https://doi.org/10.24432/C5XW20",
    licence="CC BY 4.0",
    caveats=(
        "The edges join people with similar features: they hold nothing that the features do not.",
        "Husband and wife are values of a feature: leaving the column sex out does not hide it.",
        "The census's sampling weight (fnlwgt) is left out, so shares are those of the sample, not of the US.",
    ),
)
