//! The URLs of a site: their paths, sizes and popularity.

use super::random::Random;

/// Paths and sizes of the URLs, the most popular first.
pub(super) struct Urls {
    text: Vec<u8>,
    /// End of each path in `text`, as an index.
    ends: Vec<usize>,
    bytes: Vec<u64>,
    /// First part of the alias table: probability that URL i is drawn if column i was chosen.
    own: Vec<f64>,
    /// Second part of the alias table: the other URL that may be drawn if column i was chosen.
    alias: Vec<u32>,
}

impl Urls {
    /// Makes paths and sizes for `count` URLs, whose popularity follows Zipf's law with the exponent `zipf`.
    pub fn new(count: u32, zipf: f64, random: &mut Random) -> Urls {
        let mut urls =
            Urls { text: Vec::new(), ends: Vec::new(), bytes: Vec::new(), own: Vec::new(), alias: Vec::new() };
        for url in 0..count {
            let path = match url % 8 {
                0 => format!("/{}/page-{url}.html", SECTIONS[url as usize / 8 % SECTIONS.len()]),
                1 => format!("/assets/css/style-{url}.css"),
                2 => format!("/assets/js/module-{url}.min.js?v={}", url % 17),
                3..6 => format!("/images/{}/photo-{url}.jpg", url / 64),
                6 => format!("/api/v1/items/{url}?fields=name,price&sort=-date"),
                _ => format!("/download/report-{url}.pdf"),
            };
            urls.text.extend_from_slice(path.as_bytes());
            urls.ends.push(urls.text.len());
            urls.bytes.push(random.body_bytes());
        }
        urls.set_weights(&(0..count).map(|url| f64::from(url + 1).powf(-zipf)).collect::<Vec<_>>());
        urls
    }

    /// Builds the alias table by Vose's method: every URL has a column of the mean weight. If a URL has less weight,
    /// the rest of its column is assigned to a URL with more weight.
    fn set_weights(&mut self, weights: &[f64]) {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        self.own = weights.iter().map(|weight| weight / mean).collect();
        self.alias = (0..).take(weights.len()).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|&i| self.own[i] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            self.alias[less] = u32::try_from(more).expect("the index of a URL fits a u32");
            self.own[more] -= 1.0 - self.own[less];
            if self.own[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
    }

    /// Draws the index of a URL by its popularity.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let column = random.below(u32::try_from(self.own.len()).expect("the number of URLs fits a u32"));
        if random.unit() < self.own[column as usize] { column } else { self.alias[column as usize] }
    }

    /// The path of the URL with this index.
    pub fn path(&self, url: u32) -> &[u8] {
        let url = url as usize;
        let start = if url == 0 { 0 } else { self.ends[url - 1] };
        &self.text[start..self.ends[url]]
    }

    /// The size of the URL's content, in bytes.
    pub fn body_bytes(&self, url: u32) -> u64 {
        self.bytes[url as usize]
    }
}

const SECTIONS: [&str; 6] = ["news", "products", "blog", "docs", "about/company", "shop/category"];
