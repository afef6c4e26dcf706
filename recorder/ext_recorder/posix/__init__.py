"""The operating system, as record, replay and verify use it: child processes, signals, non-blocking output."""
