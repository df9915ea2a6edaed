"""Studies of a clone: what shows that the package is right and fast. README.md lists them."""
