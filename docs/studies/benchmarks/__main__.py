"""`python docs/studies/benchmarks`: speed and memory, from the root of a clone."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    from studies.benchmarks.command import main

    main()
