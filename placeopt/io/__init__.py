"""Files: problem specs and plans are read, checked, compiled and written; graphs of other tools are imported."""
