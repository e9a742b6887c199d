"""Storage of files apart from the servers: a local folder or an S3-compatible bucket."""
