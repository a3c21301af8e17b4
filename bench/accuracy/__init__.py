"""Surveys third-party servers, and compares the predictions for each with its measurements."""
