"""Operations of ext-shell: one module each. They do not import each other."""
