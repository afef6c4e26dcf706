"""Operations that send requests. Their modules do not import each other."""
