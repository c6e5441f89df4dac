"""Read, check, compile and write problem specs and plans; import graphs of other tools."""
