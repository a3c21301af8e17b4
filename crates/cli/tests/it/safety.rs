//! Nothing that was measured is lost, and nobody else on the machine is let in: full disks, limits, killed processes, and
//! other users who plant files, hold locks and squat on names. `make test-safety` runs these alone.

mod limits;
mod names;
mod planted_python;
mod side_outputs;
mod test_bed;
