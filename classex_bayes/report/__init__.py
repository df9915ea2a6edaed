"""What a fitted model found, as numbers for programs and as one page for people."""
