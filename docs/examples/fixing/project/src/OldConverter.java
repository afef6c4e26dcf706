class OldConverter {}
