"""Operations: requests and mock servers. Their modules do not import each other."""
