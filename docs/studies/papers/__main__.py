"""`python docs/studies/papers`: the papers' tables and figures, from the root of a clone."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    from studies.papers.command import main

    main()
