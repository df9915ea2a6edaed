"""Results of a fitted model as one JSON document and as one HTML page."""
