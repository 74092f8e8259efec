"""People and a machine as judges: where they agree, whom the machine favours, and what both say together."""
