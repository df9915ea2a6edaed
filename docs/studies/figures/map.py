"""Draws the figure of docs/map.md: how data flow through the rooms of the package."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from studies.pages import FIGURES

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#00795a", "#555555"
TRUNK = {  # room: place, and what it hands on
    "core": ((0, 0), "ranks, influence,\nmetrics, law of U*"),
    "task": ((1, 0), "SourceTask,\nRankTable: a row\nan instance"),
    "estimators": ((2, 0.62), "point estimates of\nthe literature"),
    "bayes": ((2, -0.62), "posterior of D(u)"),
    "results": ((3, 0), "Extrapolation:\ndraws at every k"),
    "plots": ((4, 0), "figures"),
    "report": ((5, 0), "one page"),
    "cli": ((6, 0), "the shell"),
}
ARROWS = [
    *(("core", "task"), ("task", "estimators"), ("task", "bayes"), ("estimators", "results")),
    *(("bayes", "results"), ("results", "plots"), ("plots", "report"), ("report", "cli")),
]
WINGS = {
    "risk": "costs of errors",
    "assumptions": "diagnosis, drift",
    "identification": "brain responses",
    "information": "bits, bounds",
    "open_set": "FNIR, FPIR",
}
BESIDE = {  # room: place, what it holds, and the room of the trunk that it serves
    "io": (0.5, "files become tasks", "task"),
    "simulate": (1.5, "populations with\nknown accuracy", "task"),
    "evaluate": (3, "compare, plan,\nback-test", "results"),
}
GROUND = "exceptions, typing, arguments, formatting, array_access, parallel, plot_method"
WIDTH, HEIGHT, STEP = 1.6, 0.96, 1.9


def room(axis, x: float, y: float, name: str, text: str, color: str) -> None:
    """Draw one room: a box with its name and what it holds."""
    corner = x - WIDTH / 2, y - HEIGHT / 2
    shape = "round,pad=0.02,rounding_size=0.1"
    axis.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, shape, fc="white", ec=color, lw=1.8))
    axis.text(x, y + 0.28, name, ha="center", va="center", weight="bold", color=color)
    axis.text(x, y - 0.14, text, ha="center", va="center", fontsize=8, color=GREY)


def main() -> None:
    """Draw trunk, wings and what looks into them."""
    figure, axis = plt.subplots(figsize=(11, 5.4), layout="constrained")
    places = {name: (STEP * x, 1.1 * y) for name, ((x, y), _) in TRUNK.items()}
    for name, (_, text) in TRUNK.items():
        room(axis, *places[name], name, text, BLUE)
    axis.annotate(
        "scores", (-WIDTH / 2, 0), (-2.15, 0), va="center", arrowprops={"arrowstyle": "->"}
    )
    for start, end in ARROWS:
        (x, y), (to_x, to_y) = places[start], places[end]
        ends = (to_x - WIDTH / 2 - 0.03, to_y), (x + WIDTH / 2 + 0.03, y)
        axis.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": BLUE})
    for number, (name, text) in enumerate(WINGS.items()):
        room(axis, STEP * (1 + number), 2.35, name, text, ORANGE)
    axis.text(
        -2.15,
        2.35,
        "wings: imported\nby plots, report, cli\nand evaluate alone",
        va="center",
        color=ORANGE,
    )
    for name, (place, text, served) in BESIDE.items():
        x, y, (to_x, to_y) = STEP * place, -2.35, places[served]
        room(axis, x, y, name, text, GREEN)
        ends = (to_x + (x - to_x) * 0.3, to_y - HEIGHT / 2 - 0.03), (x, y + HEIGHT / 2 + 0.03)
        axis.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": GREEN})
    axis.text(-2.15, -2.35, "three more\nrooms", va="center", color=GREEN)
    axis.text(-2.15, -3.2, f"on the ground: {GROUND}", va="center", color=GREY)
    axis.set(xlim=(-2.3, STEP * 6 + 0.9), ylim=(-3.45, 2.95))
    axis.set_axis_off()
    figure.savefig(FIGURES / "map.png", dpi=140)
