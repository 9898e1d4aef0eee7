"""Benchmarks as elections: tasks vote, models stand. Rows are tasks, columns are models; larger is better."""
