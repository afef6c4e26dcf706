"""Access to files beneath the working directory, whatever paths and symbolic links say, and checks of files."""
