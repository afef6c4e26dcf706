"""One module for each operation. They import everything else, and never each other."""
