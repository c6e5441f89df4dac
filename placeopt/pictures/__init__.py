"""Pictures of schedules and of comparisons."""
