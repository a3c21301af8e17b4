"""Fast tests of what the comparison reads and computes: `python3 -m unittest discover -s bench -t .`"""
