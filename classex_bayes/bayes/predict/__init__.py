"""What a posterior predicts."""
