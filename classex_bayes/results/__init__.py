"""Results: predictions as draws or points, their intervals, tables and sentences."""
