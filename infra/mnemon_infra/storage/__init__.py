"""Storage of files apart from the servers: a local folder or an s3-compatible bucket."""
