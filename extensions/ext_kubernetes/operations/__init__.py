"""One module for each family of operations. They import everything below, and never each other."""
