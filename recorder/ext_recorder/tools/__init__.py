"""Offline commands on cassettes: a module or folder for each command. They start no child and replay nothing."""
