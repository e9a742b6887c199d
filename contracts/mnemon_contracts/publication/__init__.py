"""What is generated from the contracts: schemas, AsyncAPI and pages."""
