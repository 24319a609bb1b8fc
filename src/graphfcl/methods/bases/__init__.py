"""Learners that methods grow from. Each stands directly or at one remove on the contract."""
