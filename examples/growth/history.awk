# Generates history.csv: invented daily requests of a year that grow by a half, with weekends and some noise. The noise
# is pseudo-random with a fixed seed, so the file is the same everywhere.
BEGIN {
    split("1.06 1.08 1.07 1.05 1.00 0.86 0.88", week, " ")
    noise = 12345
    days = split("31 28 31 30 31 30 31 31 30 31 30 31", length_of, " ")
    print "date,requests"
    for (month = 1; month <= days; month++)
        for (day = 1; day <= length_of[month]; day++) {
            noise = (noise * 16807) % 2147483647
            level = 9.0e6 * 1.5 ^ (n / 365) * (1 + 0.06 * (noise / 2147483647 - 0.5))
            # 1 January 2025 was a Wednesday.
            printf "2025-%02d-%02d,%d\n", month, day, level * week[(n + 2) % 7 + 1]
            n++
        }
}
