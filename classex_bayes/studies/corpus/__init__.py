"""Real populations of many classes, on which extrapolation is judged and the prior is learnt."""
