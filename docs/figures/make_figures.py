"""Draw the pictures of `docs/how-it-works.md` with the library itself, and that of `docs/scale.md`.

Run from the repository's root, where fairpass and matplotlib are installed:

    python docs/figures/make_figures.py
"""

import json
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from torch import Tensor

from fairpass import GMMDPropagation, synthetic
from fairpass.kernels import Discrepancy, Groups, mmd2, witness

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#555555"
WITNESS = LinearSegmentedColormap.from_list("witness", ["#f4b183", "#ffffff", "#8fc1e3"])
ALPHA = 0.3


def main() -> None:
    """Draw every figure."""
    # The same bytes at every run: no date, no random ids.
    mpl.rcParams.update({"svg.hashsalt": "fairpass", "font.size": 10, "axes.titlesize": 10})
    figures = {"message": draw_message, "steps": draw_steps, "directions": draw_directions, "halos": draw_halos}
    for name, draw in figures.items():
        figure = draw()
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


def draw_message() -> mpl.figure.Figure:
    """Two groups of points, their witness function, and where the message moves each point."""
    generator = torch.Generator().manual_seed(3)
    sens = (torch.arange(90) >= 60).long()
    points = torch.randn(90, 2, generator=generator) * torch.tensor([1.0, 0.7])
    points += torch.where(sens[:, None] == 0, torch.tensor([-1.1, 0.35]), torch.tensor([1.3, -0.45]))
    discrepancy = Discrepancy(Groups.of(sens))

    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.5), sharex=True, sharey=True, layout="constrained")
    taken = 0
    for panel, steps in zip(panels, (0, 4, 40), strict=True):
        for _ in range(steps - taken):
            points = points + message(points, discrepancy)
        taken = steps
        draw_witness(panel, points, sens)
        ahead = 6 * message(points, discrepancy)
        panel.quiver(*points.T, *ahead.T, color=GREY, angles="xy", scale_units="xy", scale=1, width=0.005)
        for group, colour, marker in ((0, BLUE, "o"), (1, ORANGE, "^")):
            panel.scatter(
                *points[sens == group].T, c=colour, marker=marker, s=22, edgecolors="white", linewidths=0.5,
                label=f"group {group}",
            )  # fmt: skip
        panel.set_title(f"after {steps} steps: MMD² = {mmd2(points, sens, ALPHA):.3f}")
        panel.set(xlabel="F, first column", xlim=(-4.5, 4.5), ylim=(-3.1, 3.1))
    panels[0].set_ylabel("F, second column")
    panels[0].legend(loc="upper right", frameon=False)
    return figure


def message(points: Tensor, discrepancy: Discrepancy) -> Tensor:
    """Return the largest step down the gradient that each group's curvature allows."""
    return -discrepancy.gradient(points, ALPHA)[0] / discrepancy.curvature(ALPHA)


def draw_witness(panel: Axes, points: Tensor, sens: Tensor) -> None:
    """Shade the plane by the witness function, blue where group 0 is denser."""
    x, y = torch.linspace(-4.5, 4.5, 46), torch.linspace(-3.1, 3.1, 32)
    grid = torch.cartesian_prod(x, y)
    height = witness(grid, points, sens, ALPHA).reshape(46, 32).T
    levels = torch.linspace(-0.75, 0.75, 16).tolist()
    panel.contourf(x, y, height, levels=levels, cmap=WITNESS, extend="both")
    panel.contour(x, y, height, levels=[0], colors=GREY, linewidths=0.8, linestyles="--")


def draw_steps() -> mpl.figure.Figure:
    """What each layer does to the objective and the discrepancy, by the paper's step and by a stable one."""
    data = synthetic(1000, sens_homophily=0.8, seed=0)
    generator = torch.Generator().manual_seed(0)
    x_in = data.x.double() @ torch.randn(data.num_features, 2, generator=generator, dtype=torch.float64)
    x_in = (x_in - x_in.mean(0)) / x_in.std()
    graph = GMMDPropagation().prepare(data.edge_index, data.num_nodes, torch.float64)
    smallest = int(torch.bincount(data.sens).min())

    figure, (gentle, strong, apart) = plt.subplots(1, 3, figsize=(9.6, 3.1), layout="constrained")
    for weight, objectives, discrepancies in ((5, gentle, None), (25, strong, apart)):
        lambda_f = weight * smallest / (16 * ALPHA)
        for step, colour, marker in (("paper", ORANGE, "^"), ("stable", BLUE, "o")):
            layer = GMMDPropagation(K=1, lambda_f=lambda_f, alpha=ALPHA, step=step, bandwidth="fixed")
            states = [x_in]
            for K in range(1, 13):
                layer.K = K
                states.append(layer(x_in, graph, data.sens))
            style = {"color": colour, "marker": marker, "markersize": 4, "label": f'step="{step}"'}
            heights = [layer.objective(F, x_in, graph, data.sens, ALPHA, lambda_f) for F in states]
            objectives.plot(heights, **style)
            if discrepancies is not None:
                discrepancies.semilogy([mmd2(F, data.sens, ALPHA) for F in states], **style)
        objectives.set(title=f"weight {weight}", ylabel="objective h(F)", ylim=(0, None))
    apart.set(title="weight 25", ylabel="MMD²")
    for panel in (gentle, strong, apart):
        panel.set(xlabel="layers", xticks=range(0, 13, 3))
    gentle.legend(frameon=False)
    return figure


def draw_directions() -> mpl.figure.Figure:
    """How far the sliced message is off, by number of directions, as `python -m benchmarks classes` has measured it."""
    stored = HERE.parents[1] / "benchmarks" / "results" / "classes.json"
    rows = json.loads(stored.read_text())["tables"][2]["rows"]
    styles = {"after 0, %": (BLUE, "o"), "after 1, %": (GREY, "s"), "after 4, %": (ORANGE, "^")}

    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.5), sharey=True, layout="constrained")
    for panel, d in zip(panels, (4, 9), strict=True):
        chosen = [row for row in rows if row["d"] == d]
        for column, (colour, marker) in styles.items():
            steps = column.removeprefix("after ").removesuffix(", %")
            label = "at the start of a layer" if steps == "0" else f"after {steps} fair step{'s' * (steps != '1')}"
            counts, errors = [row["directions"] for row in chosen], [row[column] for row in chosen]
            panel.loglog(counts, errors, color=colour, marker=marker, markersize=4, label=label)
        panel.axvline(chosen[2]["directions"], color=GREY, linewidth=0.8, linestyle="--")
        panel.annotate(
            "default", (chosen[2]["directions"], 1), xycoords=("data", "axes fraction"),
            xytext=(4, -12), textcoords="offset points", color=GREY,
        )  # fmt: skip
        panel.axhline(5, color=GREY, linewidth=0.8, linestyle=":")
        panel.set_xticks(counts, [str(count) for count in counts])
        panel.minorticks_off()
        panel.set(title=f"{d + 1} classes (d = {d})", xlabel="directions")
    panels[0].set_yticks([0.05, 0.1, 0.5, 1, 5, 10, 50], ["0.05", "0.1", "0.5", "1", "5", "10", "50"])
    panels[0].set_ylabel("relative error of the message, %")
    panels[1].legend(frameon=False, loc="upper right")
    return figure


def draw_halos() -> mpl.figure.Figure:
    """How large halos are, by number of parts and order of the nodes, as `python -m benchmarks halo_sizes` found."""
    stored = HERE.parents[1] / "benchmarks" / "results" / "halo_sizes.json"
    rows = json.loads(stored.read_text())["tables"][1]["rows"]
    styles = {None: (ORANGE, "^"), 0.5: (GREY, "s"), 0.9: (BLUE, "o"), 0.99: (BLUE, "v")}

    figure, (halos, balance) = plt.subplots(1, 2, figsize=(9.6, 3.5), layout="constrained")
    for (exponent, inside), chosen in groupby(rows, lambda row: (row["exponent"], row["edges inside"])):
        found, (colour, marker) = list(chosen), styles[inside]
        order = "random order" if inside is None else f"communities, {100 * inside:.0f} % of edges inside"
        style = {"color": colour, "marker": marker, "markersize": 4, "linestyle": "-" if exponent == 2.5 else ":"}
        parts = [row["parts"] for row in found]
        label = f"{order}, exponent {exponent:g}"
        halos.loglog(parts, [row["halo / own nodes"] for row in found], label=label, **style)
        balance.semilogx(parts, [row["largest part / mean, edges"] for row in found], **style)
    halos.set(
        title="halo nodes for each own node", yticks=[0.1, 0.3, 1, 3, 10], yticklabels=["0.1", "0.3", "1", "3", "10"]
    )
    balance.set(title="edges of the largest part / mean", ylim=(1, None))
    for panel in (halos, balance):
        panel.set_xticks(parts, [str(count) for count in parts])
        panel.minorticks_off()
        panel.set(xlabel="parts")
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    return figure


if __name__ == "__main__":
    main()
