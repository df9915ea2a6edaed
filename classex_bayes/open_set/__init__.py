"""Wing: open-set identification and selective classification, rates at a threshold."""
