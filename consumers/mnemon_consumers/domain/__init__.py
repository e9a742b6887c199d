"""Rules on facts and spending that several consumers follow."""
