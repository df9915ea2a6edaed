"""From scores or embeddings to ranks: wrong classes above the true one, counted as rank - 1."""
