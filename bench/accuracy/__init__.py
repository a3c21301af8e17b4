"""Surveys servers of other people's making, and holds what was predicted of each against what was then measured."""
