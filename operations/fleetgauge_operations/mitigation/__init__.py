"""What is done about a sick broker: planned from what is read live, behind fail-safes, on record, undone."""
