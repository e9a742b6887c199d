"""Command `mnemon document`, and the indexing of folders."""
