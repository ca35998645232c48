"""German: who is a good customer of a bank, with the customer's gender as the sensitive attribute.

| nodes | features | undirected edges | label homophily | sensitive homophily | largest degree |
|-------|----------|------------------|-----------------|---------------------|----------------|
| 1,000 | 27       | 21,742           | 0.587           | 0.805               | 286            |

Nodes are customers, edges join customers with similar accounts. 70 % are good customers; 31 % are
recorded as female.
"""

from fairpass.datasets.spec import CodedColumn, ExpectedStatistics, GraphSpec, SimilarityRecipe, SourceFile

GERMAN = GraphSpec(
    name="german",
    title="German Credit",
    table=SourceFile("german.csv", sha256="49cc549b1ca3f1650e3bdcd8cfce62313c763abfbcbf785d32b07fb76ae078ca"),
    label=CodedColumn("GoodCustomer", values=(-1, 1), names=("bad customer", "good customer")),
    sensitive=CodedColumn("Gender", values=("Male", "Female"), names=("male", "female")),
    dropped=("OtherLoansAtStore", "PurposeOfLoan"),
    split="balanced",
    labels_for_training=100,
    graph=SimilarityRecipe(threshold=0.8, minmax_columns=("Age", "LoanAmount", "LoanDuration")),
    published_scale="none",
    statistics=ExpectedStatistics(
        nodes=1_000,
        features=27,
        undirected_edges=21_742,
        label_homophily=0.587,
        sensitive_homophily=0.805,
        max_degree=286,
        labels=(300, 700),
        groups=(690, 310),
    ),
    source="UCI Statlog (German Credit Data), in the form published with NIFTY",
    citation=(
        "Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C5NC77. Form and graph: Agarwal, C., Lakkaraju, H., Zitnik, M. (2021). "
        "Towards a Unified Framework for Fair and Stable Graph Representation Learning. UAI."
    ),
    licence="CC BY 4.0",
    caveats=(
        "ForeignWorker and MissedPayments are inverted in the benchmark: 1 means no foreign worker, and no "
        "delay in paying off.",
        "Gender is a proxy: the raw data have one code for sex and marital status together.",
        "The literature trains on the raw features (scale='published'), with amounts in the thousands beside "
        "zeros and ones.",
    ),
)
