"""The figure on the theory: what happens while a model is trained."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from fairpass.experiments.figures.style import legend, line_style, panels
from fairpass.experiments.findings import TITLES, Findings

# What is drawn, what it is called, and what it is multiplied by.
_CURVES = {
    "ACC": ("ACC (%)", 100.0),
    "DP": ("ΔDP (%)", 100.0),
    "similarity": ("group similarity × 100", 100.0),
    "bound": ("bound, Theorem 4.2", 1.0),
}


def theory(findings: Findings) -> dict[str, Figure]:
    """Return accuracy, ΔDP, the similarity between the groups and the bound, epoch by epoch."""
    datasets = findings.datasets("theory")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("theory", d)))
    figure, axes = panels(len(datasets), len(_CURVES), row_height=1.65)
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, (name, (_, factor)) in zip(row, _CURVES.items(), strict=True):
            for label in labels:
                finding = findings.one("theory", dataset, label)
                curves = {} if finding is None else finding.measured["curves"]
                if name in curves:
                    points = [
                        (x, factor * y) for x, y in zip(curves["epoch"], curves[name], strict=True) if y is not None
                    ]
                    ax.plot(*zip(*points, strict=True), **line_style(label))
            if name == "bound":
                ax.yaxis.set_major_formatter(EngFormatter(sep=""))
            ax.margins(x=0.02)
        row[0].set_ylabel(TITLES[dataset])
    for ax, (title, _) in zip(axes[0], _CURVES.values(), strict=True):
        ax.set_title(title)
    figure.supxlabel("epoch", fontsize=8)
    legend(figure, [Line2D([], [], label=label, **line_style(label)) for label in labels])
    return {"theory": figure}
