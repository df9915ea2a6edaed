"""Real populations of many classes. They test extrapolation, and the prior is learnt on them."""
