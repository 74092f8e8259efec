"""What compiled code stands on: how it is compiled, and arithmetic, orders and rows that know nothing of ranking."""
