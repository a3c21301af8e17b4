use super::*;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64;
use std::collections::{BTreeSet, HashMap};

fn entry<'a>(method: &'a [u8], target: &'a [u8], bytes: u64) -> Entry<'a> {
    Entry { method, target, bytes: Some(bytes), ..Entry::default() }
}

/// Checks the invariants of the slots, the queue and the hash table.
fn assert_sound(urls: &TopUrls) {
    assert!(urls.queue.len() <= urls.capacity && urls.index.len() == urls.queue.len());
    assert_eq!(urls.used, urls.queue.len() + urls.free.len());
    let slots: BTreeSet<usize> = urls.queue.iter().map(|Reverse(place)| place.slot()).collect();
    assert_eq!(slots.len(), urls.queue.len());
    assert_eq!(slots.iter().map(|slot| urls.urls[*slot].url.len()).sum::<usize>(), urls.length);
    assert!(urls.length <= MAX_URL_BYTES + urls.capacity * MEAN_LENGTH);
    for Reverse(place) in &urls.queue {
        let url = &urls.urls[place.slot()];
        assert!(place.0 <= QueueEntry::new(url.requests, place.slot()).0);
        assert_eq!(urls.find(url.hash), Some(place.slot()));
        assert!(url.url.capacity() <= 2 * url.url.len() + TEXT_STEP);
    }
}

#[test]
fn counts_are_exact_while_there_is_room() {
    let (mut urls, mut exact) = (TopUrls::new(1_000), HashMap::<u64, (u64, u64)>::new());
    let mut rng = Pcg64::seed_from_u64(1);
    for _ in 0..50_000 {
        let (id, bytes) = (rng.random_range(0..30u64).pow(2), rng.random_range(0..9));
        urls.add(&entry(b"GET", format!("/{id}").as_bytes(), bytes));
        let sum = exact.entry(id).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    }
    assert_sound(&urls);
    let sorted = urls.sorted();
    assert!(urls.is_exact() && sorted.len() == exact.len() && sorted.is_sorted_by(|a, b| a.requests >= b.requests));
    for url in sorted {
        let id: u64 = std::str::from_utf8(&url.url[1..]).unwrap().parse().unwrap();
        assert_eq!((url.requests, url.bytes, url.requests_error), (exact[&id].0, exact[&id].1, 0));
        assert_eq!(&*url.method, b"GET");
    }
}

#[test]
fn without_room_counts_are_never_too_low_and_the_popular_ones_are_there() {
    let (mut urls, mut exact) = (TopUrls::new(200), HashMap::<Vec<u8>, u64>::new());
    let (zipf, mut rng) = (Zipf::new(20_000.0, 1.0).unwrap(), Pcg64::seed_from_u64(2));
    let total = 100_000;
    for i in 0..total {
        let url = format!("/page/{}", zipf.sample(&mut rng));
        urls.add(&entry(b"GET", url.as_bytes(), 1));
        *exact.entry(url.into_bytes()).or_default() += 1;
        if i % 10_000 == 0 {
            assert_sound(&urls);
        }
    }
    let sorted = urls.sorted();
    assert!(!urls.is_exact() && sorted.len() == 200);
    assert_eq!(sorted.iter().map(|url| url.requests).sum::<u64>(), total, "each request must be counted once");
    for url in &sorted {
        let true_count = exact[&*url.url];
        assert!(url.requests >= true_count && url.requests - url.requests_error <= true_count);
        assert!(url.requests_error <= total / 200);
    }
    for (url, _) in exact.iter().filter(|(_, count)| **count > total / 200) {
        assert!(sorted.iter().any(|known| *known.url == **url), "a popular URL is missing");
    }
}

#[test]
fn it_counts_as_the_definition_does() {
    let (zipf, mut rng) = (Zipf::new(300.0, 0.7).unwrap(), Pcg64::seed_from_u64(3));
    let mut urls = TopUrls::new(40);
    for round in 0..3 {
        // A simple model of the algorithm. For each slot, it has the URL, its number of requests, and the error of this
        // number.
        let mut slots: Vec<(String, u64, u64)> = Vec::new();
        for _ in 0..3_000 {
            let name = format!("/{}", zipf.sample(&mut rng));
            let is_known = slots.iter().any(|slot| slot.0 == name);
            if !is_known && slots.len() < 40 {
                slots.push((name.clone(), 0, 0));
            } else if !is_known {
                let least = slots.iter().map(|slot| slot.1).min().unwrap();
                let slot = slots.iter_mut().find(|slot| slot.1 == least).unwrap();
                *slot = (name.clone(), least, least);
            }
            slots.iter_mut().find(|slot| slot.0 == name).unwrap().1 += 1;
            let hash = hash_url(&urls.hasher, name.as_bytes());
            let added = urls.add_hashed(hash, name.as_bytes(), &entry(b"GET", name.as_bytes(), 1));
            assert_eq!(added.map(|(_, is_new)| is_new), Some(!is_known));
        }
        assert_sound(&urls);
        let found: Vec<_> = urls.urls.iter().map(|url| (&*url.url, url.requests, url.requests_error)).collect();
        let expected: Vec<_> = slots.iter().map(|slot| (slot.0.as_bytes(), slot.1, slot.2)).collect();
        assert_eq!(found, expected, "round {round}");
        urls.clear();
        assert!(urls.sorted().is_empty() && urls.is_exact());
    }
}

#[test]
fn distinct_long_urls_stay_within_the_budget() {
    let mut urls = TopUrls::new(100);
    for i in 0..5_000 {
        let url = format!("/{i}/{}", "x".repeat(i % 4_000));
        urls.add(&entry(b"GET", url.as_bytes(), 1));
    }
    assert_sound(&urls);
    assert!(urls.urls.len() <= 100 && urls.sorted().len() >= 9);
    assert!(urls.sorted().iter().all(|url| url.url.len() <= MAX_URL_BYTES));
}

#[test]
fn the_method_is_that_of_most_requests() {
    let mut urls = TopUrls::new(10);
    for method in [&b"HEAD"[..], b"POST", b"GET", b"POST", b"POST", b"HEAD", b"POST"] {
        urls.add(&entry(method, b"/form", 0));
    }
    assert_eq!((&*urls.sorted()[0].method, urls.sorted()[0].mean_bytes()), (&b"POST"[..], 0.0));
    urls.add(&entry(b"GET", b"", 1));
    assert_eq!(urls.sorted().len(), 1, "requests without a URL must not be counted");
}

#[test]
fn a_proxy_is_asked_for_the_same_url() {
    let cases: [(&[u8], &[u8]); 6] = [
        (b"http://www.example.com/a?b=c", b"/a?b=c"),
        (b"https://example.com", b"/"),
        (b"/http://x/y", b"/http://x/y"),
        (b"httpd.conf", b"httpd.conf"),
        (b"*", b"*"),
        (b"", b""),
    ];
    for (target, expected) in cases {
        assert_eq!(url(target), expected);
    }
    assert_eq!(url(&[b'/'; 5_000]).len(), MAX_URL_BYTES);
}
