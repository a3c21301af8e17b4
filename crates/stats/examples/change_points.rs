//! Finds the change points of the series on stdin, for `bench/history`: each line is a series of numbers, and the same
//! line of stdout has the indices of the first values after each change.
#![forbid(unsafe_code)]

use brimful_stats::change_points;
use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let values: Result<Vec<f64>, _> = line?.split_whitespace().map(str::parse).collect();
        let points = change_points(&values.map_err(io::Error::other)?);
        writeln!(stdout, "{}", points.iter().map(usize::to_string).collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}
