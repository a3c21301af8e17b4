"""Fast tests of the comparison of load generators: `python3 -m unittest discover -s bench -t .`"""
