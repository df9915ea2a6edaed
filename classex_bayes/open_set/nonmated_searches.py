"""Non-mated searches of a fit: of separate probes, or of test instances against other classes."""

from typing import NamedTuple, Self

import xarray as xr

# Group of `idata` with a group for each scale; groups of wrong scores in that of a scale.
SCALES, WRONG, NONMATED = "scales", "wrong", "nonmated"


class NonmatedSearches(NamedTuple):
    """Number of non-mated searches, and whether `nonmated` was passed to `fit`."""

    n: int
    are_others: bool

    @classmethod
    def of(cls, tree: xr.DataTree) -> Self:
        """Searches of a fitted model, from its groups."""
        groups = tree[SCALES]["0"]
        are_others = NONMATED in groups.children
        return cls(groups[NONMATED if are_others else WRONG].sizes["probe"], are_others)

    @property
    def best_score(self) -> str:
        """Name of the best score, beyond which FPIR has no data."""
        if self.are_others:
            return "best score of the non-mated probes"
        return "best wrong score of the pilot"

    @property
    def origin(self) -> str:
        """Origin of the probes."""
        return "other probes" if self.are_others else "the mated probes against other classes"
