"""Benchmarks: ratios of medians from alternating runs on one machine. Never part of the tests."""
