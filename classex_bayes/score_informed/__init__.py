"""Wing: a posterior from ranks and scores."""
