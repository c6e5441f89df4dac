"""List scheduling: tasks are placed in an order that is fixed first."""
