"""`python -m classex_bayes` is the command line."""

from classex_bayes.cli import main

if __name__ == "__main__":
    main()
