"""Commands on cassettes that run no child and no player: one module or folder for each command."""
