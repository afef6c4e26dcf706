"""Operations of ext-shell. Their modules do not import each other."""
