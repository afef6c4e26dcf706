"""Program `gevals-extensions`, which runs any of the other programs: hosts fetch one executable for each repository."""
