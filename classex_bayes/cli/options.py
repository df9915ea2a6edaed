"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Level = Annotated[float, typer.Option(help="Level of the credible intervals.")]
Draws = Annotated[int, typer.Option(min=1, help="Posterior draws in each chain.")]
Chains = Annotated[int, typer.Option(min=1, help="Number of chains.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and posterior.")]
File = Annotated[Path, typer.Argument(help="Data: .npz, .npy (with --labels) or .csv.")]
Counts = Annotated[str, typer.Option("--k", help="Numbers of classes, separated by commas.")]
Labels = Annotated[Path | None, typer.Option(help="Labels (.npy) of scores in .npy.")]
Metric = Annotated[str | None, typer.Option(help="Of embeddings: sqeuclidean, cosine or dot.")]
Distances = Annotated[bool, typer.Option("--distances", help="Smaller scores are better.")]
NTest = Annotated[int | None, typer.Option(help="Test instances behind a curve in .csv.")]
NClasses = Annotated[int | None, typer.Option(help="Source classes behind a curve in .csv.")]
Slow = Annotated[
    bool,
    typer.Option("--slow", help="All, and CleaneX, which takes minutes."),
]
Target = Annotated[float | None, typer.Option(help="Accuracy wanted: until how many classes?")]
