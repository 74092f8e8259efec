"""Queries in: data sets, readers, writers, splits, blocks and generators."""
