"""`python docs/studies/corpus`: estimators on real populations, from the root of a clone."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    from studies.corpus.command import main

    main()
