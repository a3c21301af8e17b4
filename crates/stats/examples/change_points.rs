//! Finds the change points of series, for `bench/history`. Each line of stdin is a series of numbers. For each, a line
//! of stdout has the index of the first value after each change.
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
