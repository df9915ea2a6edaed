"""Wing: the average cost of an answer in place of its accuracy."""
