"""What the items are called on the page of results, and the sentences under their figures."""

INTRODUCTION = """\
# Results

Everything that the paper shows, regenerated, and some things that it does not. This page is made by
`scripts/build_results.py` from the records of the runs in the repository's `results` directory, and nothing on it is
written by hand; the command above each section makes its runs, tables and figures again.

All methods have the same rule: the epoch, the threshold and the configuration are those that do best on the validation
nodes by AUC + F1 + ACC - ΔDP - ΔEO, and all numbers are on the test nodes. The [metrics](metrics.md) are in percent:
AUC, F1 and ACC are better if larger, ΔDP (demographic parity) and ΔEO (equal opportunity) if smaller. The paper's
numbers are beside ours. Two kinds of GMMD are shown: *as the paper defines it*, with sampled nodes, its step and its
fixed bandwidth, and *as we recommend it*, with all nodes, stable steps and an adaptive bandwidth;
[how fairpass reads the paper](paper.md) says why.

A claim of the paper is *seen* if it holds wherever it was measured, *partly seen* if only somewhere, and *not seen* if
nowhere. Utility is the mean of AUC, F1 and ACC, bias that of ΔDP and ΔEO; comparable means within one point."""

ITEM_TITLES = {
    "stats": "The data sets",
    "main": "Main comparison",
    "backbones": "Other backbones",
    "ablation": "Parts left out",
    "hyper": "Weights of smoothness and fairness",
    "layers": "Layers of message passing",
    "theory": "The theorems",
    "alpha": "Width of the kernel",
    "mlp": "Depth of the perceptron",
    "cases": "Case study",
    "runtime": "Training time",
    "pareto": "Accuracy against bias",
    "beyond": "Beyond the paper",
}

CAPTIONS = {
    "main": "All methods on the test nodes: ours with one standard deviation, and what the paper prints.",
    "hyper": "Accuracy and ΔDP of GMMD over the weights of smoothness and of fairness.",
    "layers": "The five metrics against the number of layers K; the band is one standard deviation over the seeds.",
    "theory": "Training curves on the validation nodes, and the bound of Theorem 4.2 with the logits of that epoch.",
    "alpha": "The five metrics against the kernel's parameter α; the band is one standard deviation over the seeds.",
    "mlp": "The five metrics against the perceptron's depth M; the band is one standard deviation over the seeds.",
    "cases-distributions": "How similar pairs of nodes of different groups are, by whether they have the same label.",
    "cases-dataset": "two nodes with neighbours, and how similar each model finds them (the numbers, and the widths).",
    "runtime": "Milliseconds per epoch, on a logarithmic axis; pale bars are GMMD as the paper defines it.",
    "pareto": "Accuracy against bias, with fairness weighed little to much; lines join what no other point of a method "
    "beats, hollow points are near constant.",
}
