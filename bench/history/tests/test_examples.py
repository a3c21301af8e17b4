import unittest

from ..examples import series_of


class Lists(unittest.TestCase):
    def test_only_long_lists_of_numbers_are_series(self) -> None:
        program = """
SHORT = [1, 2, 3]
LONG = np.array([1, -2.5, 3, 4, 5, 6, 7, 8, 9, 10])
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
def later():
    return [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, x], [0] * 20, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
"""
        found = series_of(program)
        self.assertEqual(found, [[1, -2.5, 3, 4, 5, 6, 7, 8, 9, 10], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]])


if __name__ == "__main__":
    unittest.main()
