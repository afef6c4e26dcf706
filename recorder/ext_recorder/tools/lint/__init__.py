"""`lint`: check a recorded session against the rules of its protocol (`protocols.rules`)."""
