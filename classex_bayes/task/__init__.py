"""Source tasks: what k1 tested classes say."""
