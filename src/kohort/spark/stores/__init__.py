"""Where tables are kept: a directory of this machine, or a prefix of an object store."""
