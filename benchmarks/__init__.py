"""Ratios against named peers, peers and ours in one run."""
