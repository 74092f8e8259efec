"""Contests: several rankers, chosen on validation queries and judged on the same unseen ones."""
