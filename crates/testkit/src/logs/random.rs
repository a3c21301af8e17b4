//! Generates random numbers that are the same on every machine.

/// A generator of random numbers: SplitMix64 (Steele, Lea & Flood 2014).
pub(super) struct Random(pub u64);

impl Random {
    /// A uniformly distributed 64-bit integer.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from the uniform distribution on [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An integer that is less than `count`, from the uniform distribution.
    pub fn below(&mut self, count: u32) -> u32 {
        (((self.next() >> 32) * u64::from(count)) >> 32) as u32
    }

    /// A number from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A number from the Pareto distribution with this minimum and tail index.
    pub fn pareto(&mut self, least: f64, index: f64) -> f64 {
        least * (1.0 - self.unit()).powf(-1.0 / index)
    }

    /// A number from the geometric distribution on 1, 2, … with this mean.
    pub fn geometric(&mut self, mean: f64) -> u32 {
        1 + ((1.0 - self.unit()).ln() / (1.0 - 1.0 / mean).ln()) as u32
    }

    /// The size of a file of a web site in bytes (Barford & Crovella 1998), at most 1 GiB.
    pub fn body_bytes(&mut self) -> u64 {
        if self.unit() < 0.07 {
            return self.pareto(133_000.0, 1.1).min((1_u64 << 30) as f64) as u64;
        }
        loop {
            // A number from the normal distribution, by the method of Box and Muller (1958).
            let normal = (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
            let bytes = (9.357 + 1.318 * normal).exp();
            if bytes < 133_000.0 {
                return bytes as u64;
            }
        }
    }
}
