"""Operations that send requests: `request`, `wait`, `download`, `graphql`, `session`, and their results."""
