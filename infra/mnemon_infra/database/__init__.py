"""PostgreSQL access: connections, schema, and the SQL of all projections."""
