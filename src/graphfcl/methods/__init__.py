"""Learners."""

from graphfcl.methods.learner import Learner

__all__ = ["Learner"]
