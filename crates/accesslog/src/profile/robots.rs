//! Recognizes requests of robots by their `User-Agent`. A robot that pretends to be a browser is not recognized. A
//! person who uses curl counts as a robot.

/// Words that occur in the names of robots, in lower case and sorted.
const WORDS: [&[u8]; 43] = [
    b"aiohttp",
    b"apachebench",
    b"archiver",
    b"bingpreview",
    b"bot",
    b"check_http",
    b"crawl",
    b"curl",
    b"elb-healthchecker",
    b"facebookexternalhit",
    b"feedburner",
    b"feedfetcher",
    b"feedparser",
    b"go-http-client",
    b"google-inspectiontool",
    b"googleother",
    b"haproxy",
    b"headless",
    b"http_request",
    b"httrack",
    b"java/",
    b"kube-probe",
    b"libwww-perl",
    b"lighthouse",
    b"masscan",
    b"mediapartners-google",
    b"monitis",
    b"nagios",
    b"nikto",
    b"nutch",
    b"pingdom",
    b"prometheus",
    b"python-httpx",
    b"python-requests",
    b"python-urllib",
    b"scrapy",
    b"slurp",
    b"spider",
    b"sqlmap",
    b"statuscake",
    b"wget",
    b"zabbix",
    b"zgrab",
];

/// For each byte, the start and end index of the [`WORDS`] that start with this byte.
static STARTING_WITH: [[usize; 2]; 256] = {
    let mut ranges = [[0; 2]; 256];
    let mut i = 0;
    while i < WORDS.len() {
        let first = WORDS[i][0] as usize;
        if ranges[first][1] == 0 {
            ranges[first][0] = i;
        }
        i += 1;
        ranges[first][1] = i;
    }
    ranges
};

/// Maximum number of bytes of a `User-Agent` that are searched for words.
const MAX_AGENT_BYTES: usize = 1_024;
/// Number of `User-Agent` values in the cache. A few hundred values occur in nearly all requests.
const CACHED_AGENTS: usize = 4_096;

/// Recognizes robots by their `User-Agent`, and caches the results in 64 KiB.
#[derive(Clone, Debug)]
pub(super) struct RobotDetector {
    known: Vec<Option<Known>>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    hash: u64,
    is_robot: bool,
}

impl Default for RobotDetector {
    fn default() -> Self {
        Self { known: vec![None; CACHED_AGENTS] }
    }
}

impl RobotDetector {
    /// Whether a `User-Agent` is that of a robot. `hash` is its [`fixed_hash`](super::distinct::fixed_hash). An empty
    /// `User-Agent` is not that of a robot.
    pub fn is_robot(&mut self, user_agent: &[u8], hash: u64) -> bool {
        match self.known.get_mut(hash as usize % CACHED_AGENTS) {
            Some(Some(known)) if known.hash == hash => known.is_robot,
            Some(place) => place.insert(Known { hash, is_robot: is_robot(user_agent) }).is_robot,
            None => is_robot(user_agent),
        }
    }
}

fn is_robot(user_agent: &[u8]) -> bool {
    let user_agent = user_agent.get(..MAX_AGENT_BYTES).unwrap_or(user_agent);
    let starts = |at: usize, word: &[u8]| {
        user_agent.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
    };
    user_agent.iter().enumerate().any(|(at, first)| {
        let [from, to] = STARTING_WITH[usize::from(first.to_ascii_lowercase())];
        // Cubot is a maker of telephones, so its name does not indicate a robot.
        let is_cubot = || at.checked_sub(2).is_some_and(|before| starts(before, b"cubot"));
        WORDS[from..to].iter().any(|word| starts(at, word)) && !is_cubot()
    })
}

#[cfg(test)]
mod tests {
    use super::super::distinct::fixed_hash;
    use super::*;

    fn ask(agents: &mut RobotDetector, user_agent: &[u8]) -> bool {
        agents.is_robot(user_agent, fixed_hash(user_agent))
    }

    const ROBOTS: [&str; 9] = [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "curl/8.5.0",
        "CURL",
        "Wget/1.21",
        "python-requests/2.31.0",
        "Go-http-client/1.1",
        "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        "UniversalFeedParser/4.2-pre-314-svn +http://feedparser.org/",
        "Sogou web SPIDER",
    ];
    const BROWSERS: [&str; 5] = [
        "",
        "-",
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Mozilla/5.0 (Linux; Android 11; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    ];

    #[test]
    fn robots_are_told_by_their_agents() {
        let mut agents = RobotDetector::default();
        // The first call searches the agent, and the second call uses the cache.
        for _ in 0..2 {
            for user_agent in ROBOTS {
                assert!(ask(&mut agents, user_agent.as_bytes()), "{user_agent}");
            }
            for user_agent in BROWSERS {
                assert!(!ask(&mut agents, user_agent.as_bytes()), "{user_agent}");
            }
        }
    }

    #[test]
    fn every_word_is_found() {
        assert!(WORDS.is_sorted());
        for word in WORDS {
            assert!(is_robot(&[b"Mozilla/5.0 (", &word.to_ascii_uppercase()[..], b")"].concat()), "{word:?}");
        }
    }

    #[test]
    fn memory_changes_no_answer() {
        let mut agents = RobotDetector::default();
        for i in 0..20_000 {
            let user_agent = if i % 3 == 0 { format!("bot/{i}") } else { format!("browser/{i}") };
            assert_eq!(ask(&mut agents, user_agent.as_bytes()), i % 3 == 0, "{user_agent}");
        }
        assert_eq!(agents.known.len(), CACHED_AGENTS);
        let long = [&[b'x'; 2_000][..], b"bot"].concat();
        assert!(!ask(&mut agents, &long) && ask(&mut agents, &long[1_500..]));
    }
}
