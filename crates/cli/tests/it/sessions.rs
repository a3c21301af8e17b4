//! Tests `brimful load` with sessions against nginx. nginx's access log shows the clients, their connections and the
//! times of requests.

use crate::documents;
use crate::program::run;
use brimful_core::record::{Record, SessionResults};
use brimful_core::workload::{BetweenBursts, Load};
use brimful_testkit::{Nginx, NginxOptions, RawServer, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A workload with forty new sessions per second. Each has three bursts of three calls.
fn workload(between_bursts: &str) -> String {
    format!(
        "[[class]]\nname = \"page\"\npath = \"/page\"\n[[class]]\nname = \"image\"\nweight = 2\npath = \"/image\"\n\
         [load.sessions]\nrate = 40\narrivals = \"constant\"\nbursts = 3\ncalls_per_burst = 3\nthink_s = \"0.3\"\n\
         connections = 2\nbetween_bursts = \"{between_bursts}\"\n"
    )
}

/// The requests of each session: the time in milliseconds and the number of the connection. Sessions are identified by
/// their client addresses.
type Visits = BTreeMap<String, Vec<(u64, u64)>>;

/// Loads nginx with sessions for two seconds. Returns the Record, and the requests in nginx's log by client address.
fn drive(dir: &Path, between_bursts: &str, threads: &str) -> (Record, Visits) {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (log, document) = (at("access.log"), at("workload.toml"));
    fs::write(&document, workload(between_bursts)).unwrap();
    let files = ["page", "image"].map(|name| (name.to_owned(), b"hello\n".to_vec())).to_vec();
    let http = "log_format sessions '$remote_addr $msec $connection';".to_owned();
    let extra = format!("access_log {log} sessions;");
    let nginx = Nginx::start(NginxOptions { files, http, extra, ..NginxOptions::default() });
    let args = ["load", &nginx.url(), "--workload", &document, "--duration", "2s", "--source-ip", "127.7.0.0/24"];
    let done = run(&[&args[..], &["--threads", threads, "--json"]].concat()).exits(&[0, 4]);
    drop(nginx);
    let mut visits = Visits::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let [address, time, connection] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let ms = time.replace('.', "").parse().unwrap();
        visits.entry(address.to_owned()).or_default().push((ms, connection.parse().unwrap()));
    }
    (documents::record(&done.stdout), visits)
}

fn check(between_bursts: &str, threads: &str) -> (SessionResults, Visits) {
    let dir = tempfile::tempdir().unwrap();
    let (record, visits) = drive(dir.path(), between_bursts, threads);
    let figures = record.sessions.unwrap();
    let SessionResults { started, completed, failed, in_progress, rate, .. } = figures;
    assert_eq!((started, failed, rate), (80, 0, 40.0), "{figures:?}");
    assert_eq!((completed + in_progress, visits.len()), (80, 80), "each session has its own address");
    assert_eq!(visits.values().map(Vec::len).sum::<usize>() as u64, record.counts.completed);
    assert_eq!(figures.calls.map(|calls| (calls.mean, calls.max)), Some((9.0, 9.0)), "{figures:?}");
    assert_eq!(figures.bursts.map(|bursts| bursts.mean), Some(3.0));
    assert!(figures.lifetime_s.unwrap().mean >= 0.6, "a session has two think times: {figures:?}");
    let whole: Visits = visits.into_iter().filter(|(_, visit)| visit.len() == 9).collect();
    // Sessions that were cut off at the end of the run may have made all calls in the log without being completed.
    assert!(whole.len() as u64 >= completed && completed > 0);
    for (address, visit) in &whole {
        for burst in [3, 6] {
            let thought = visit[burst].0 - visit[burst - 1].0;
            // The times in the log are in whole milliseconds, so a difference of 2 ms is tolerated.
            assert!(thought + 2 >= 300, "{address} thought for {thought} ms");
        }
    }
    (figures, whole)
}

fn connections(visit: &[(u64, u64)]) -> usize {
    visit.iter().map(|(_, connection)| connection).collect::<BTreeSet<_>>().len()
}

#[test]
fn the_servers_log_has_the_sessions_of_the_workload() {
    for threads in ["1", "2"] {
        let (figures, visits) = check("keep", threads);
        assert!(visits.values().all(|visit| (1..=2).contains(&connections(visit))), "{visits:?}");
        assert!(figures.connections.unwrap().max <= 2.0);
    }
    let (figures, visits) = check("close", "1");
    for (address, visit) in &visits {
        let of_bursts: Vec<BTreeSet<u64>> = visit.chunks(3).map(|burst| burst.iter().map(|c| c.1).collect()).collect();
        assert!(of_bursts.windows(2).all(|pair| pair[0].is_disjoint(&pair[1])), "{address}: {visit:?}");
    }
    assert!(figures.connections.unwrap().p50 >= 3.0, "{figures:?}");
}

#[test]
fn flags_that_do_not_fit_sessions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("workload.toml");
    let path = path.to_str().unwrap();
    let nginx = Nginx::start(NginxOptions::default());
    fs::write(path, workload("keep")).unwrap();
    let url = nginx.url();
    let load = |rest: &[&str]| run(&[&["load", &url, "--workload", path], rest].concat());
    load(&["--requests", "10"]).fails(2, "sessions end by themselves: leave out --requests");
    for flag in [&["--calls-per-connection", "3"][..], &["--new-connection"]] {
        load(flag).fails(2, "leave out --calls-per-connection and --new-connection");
    }
    load(&["--pipeline", "2"]).fails(2, "leave out --pipeline");
    for (text, message) in [
        ("rate = 2\nthink_s = \"weibull:1\"", "`weibull:1` is not a distribution: write a number, exponential:MEAN"),
        ("rate = 2\nbursts = \"geometric:0\"", "its mean is a number from 1 to 1e15"),
        ("rate = 2\nusers = 2", "sessions need either a rate"),
        ("rate = 2\narrivals = \"sometimes\"", "`sometimes` is not an arrival process"),
        ("rate = 0", "a rate of sessions is above zero"),
    ] {
        fs::write(path, format!("[[class]]\nname = \"a\"\npath = \"/\"\n[load.sessions]\n{text}\n")).unwrap();
        load(&[]).fails(2, message);
    }
    // A rate on the command line replaces the load in the workload file.
    fs::write(path, workload("close")).unwrap();
    let done = load(&["--rate", "50", "--requests", "5", "--json"]).exits(&[0, 4]);
    assert_eq!(documents::record(&done.stdout).sessions, None);
}

#[test]
fn the_record_has_the_defined_sessions_and_the_text_their_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("workload.toml");
    let path = path.to_str().unwrap();
    let out = dir.path().join("record.json");
    let nginx = Nginx::start(NginxOptions::default());
    let users = "[[class]]\nname = \"a\"\npath = \"/\"\n[load.sessions]\nusers = 8\nrest_s = 0.05\nbursts = 2\n\
                 between_bursts = \"close\"\n";
    fs::write(path, users).unwrap();
    let page = dir.path().join("page.html");
    let args = ["load", &nginx.url(), "--workload", path, "--duration", "500ms", "--out", out.to_str().unwrap()];
    let done = run(&[&args[..], &["--html", page.to_str().unwrap()]].concat()).exits(&[0, 4]);
    assert!(
        done.stdout.contains("\nSessions         ") && done.stdout.contains("\nSession size     "),
        "{}",
        done.stdout
    );
    let record = documents::record(&fs::read_to_string(out).unwrap());
    let page = fs::read_to_string(page).unwrap();
    let (_, inside) = page.split_once("<script type=\"application/json\" id=\"record\">").unwrap();
    let shown: Record = documents::document(inside.split_once("</script>").unwrap().0);
    assert_eq!((shown.sessions, &shown.intervals), (record.sessions, &record.intervals));
    assert!(shown.account.is_none() && shown.hdr.is_empty());
    let sessions = record.sessions.unwrap();
    assert_eq!((sessions.failed, sessions.bursts.unwrap().mean, sessions.connections.unwrap().mean), (0, 2.0, 2.0));
    let Some(Load::Sessions(asked)) = record.workload.unwrap().load else { panic!("the workload has lost its load") };
    assert_eq!((asked.between_bursts, asked.connections), (BetweenBursts::Close, 6));
}

/// The requests that a server has received: request line and `Cookie` field of each.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Starts a server that sets a cookie `id` for clients without one, and counts its responses in another cookie. The
/// second value collects the requests that the server receives.
fn cookie_server() -> (RawServer, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let server = RawServer::with_handler(move |request: &Request| {
        let cookies = request.header("cookie").unwrap_or_default().to_owned();
        let mut asked = noted.lock().unwrap();
        let own = match cookies.is_empty() {
            true => {
                format!("Set-Cookie: id={}; Path=/; HttpOnly\r\nSet-Cookie: no=x; Path=/elsewhere\r\n", asked.len())
            }
            false => "Set-Cookie: seen=yes; Max-Age=1000\r\n".to_owned(),
        };
        asked.push((format!("{} {}", request.method, request.target), cookies));
        format!("HTTP/1.1 200 OK\r\n{own}Content-Length: 1\r\n\r\nx").into_bytes()
    });
    (server, asked)
}

#[test]
fn each_session_sends_back_its_own_cookies() {
    for engine in ["epoll", "auto"] {
        for (threads, shape) in [("1", &["--users", "4"][..]), ("2", &["--session-rate", "200", "--pipelined"])] {
            let (server, asked) = cookie_server();
            let args = ["load", &server.url(), "--wsess", "12,7,0.01", "--burst-length", "3", "--cookies", "--json"];
            let more = [&["--threads", threads, "--engine", engine][..], shape].concat();
            let record = documents::record(&run(&[&args[..], &more].concat()).exits(&[0, 4]).stdout);
            let sessions = record.sessions.unwrap();
            assert_eq!((sessions.started, sessions.completed, sessions.calls.unwrap().max), (12, 12, 7.0));
            let mut of_ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (nth, (_, cookies)) in asked.lock().unwrap().iter().enumerate() {
                let id = cookies.split("; ").next().filter(|id| !id.is_empty());
                of_ids.entry(id.map_or(format!("id={nth}"), str::to_owned)).or_default().push(cookies.clone());
            }
            assert_eq!(of_ids.len(), 12, "{of_ids:?}");
            for (id, cookies) in of_ids {
                assert_eq!((cookies[0].as_str(), cookies.len()), ("", 7));
                let both = format!("{id}; seen=yes");
                // The last two calls of the first burst are concurrent: one may be answered before the other is sent.
                assert!(cookies[1..3].iter().all(|sent| *sent == id || *sent == both), "{cookies:?}");
                assert!(cookies[3..].iter().all(|sent| *sent == both), "{cookies:?}");
            }
        }
    }
    // Without `--cookies`, no cookies are sent.
    let (server, asked) = cookie_server();
    run(&["load", &server.url(), "--wsess", "2,3,0", "--quiet"]).exits(&[0, 4]);
    assert!(asked.lock().unwrap().iter().all(|(_, cookies)| cookies.is_empty()));
}

const SESSION_LOG: &str = "# two sessions\n/foo.html think=0.3\n\t/pict1.gif\n\t/pict2.gif\n/foo2.html method=POST \
                           contents='Post data'\n\n/foo3.html\n";

#[test]
fn sessions_in_a_file_are_made_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, out) = (at("sessions,1.log"), at("record.json"));
    fs::write(&file, SESSION_LOG).unwrap();
    let (server, asked) = cookie_server();
    let wsesslog = format!("3,0.1,{file}");
    let begun = std::time::Instant::now();
    run(&["load", &server.url(), "--wsesslog", &wsesslog, "--out", &out]).exits(&[0, 4]);
    assert!(begun.elapsed().as_secs_f64() >= 0.6, "a session has two think times of 0.3 s");
    let lines: Vec<String> = asked.lock().unwrap().iter().map(|(line, _)| line.clone()).collect();
    let first = ["GET /foo.html", "GET /pict1.gif", "GET /pict2.gif", "POST /foo2.html"];
    let mut expected = [&first[..], &["GET /foo3.html"], &first].concat();
    // The two requests of a burst may arrive in either order.
    let sorted = |lines: &mut [&str]| [1, 6].into_iter().for_each(|at| lines[at..at + 2].sort_unstable());
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    sorted(&mut lines);
    sorted(&mut expected);
    assert_eq!(lines, expected);

    // The Record contains counts of all sessions, and a workload that makes the same load again.
    let record = documents::record(&fs::read_to_string(out).unwrap());
    let workload = record.workload.unwrap();
    let asked_for = workload.sessions().unwrap();
    assert_eq!((asked_for.max_sessions, asked_for.scripts.len(), asked_for.mean_calls()), (Some(3), 2, 2.5));
    let document = at("workload.toml");
    let text = "[[class]]\nname = \"all\"\npath = \"/\"\n[load.sessions]\nusers = 1\nsessions = 2\n\
                [[load.sessions.script]]\nbursts = [{ calls = [{ path = \"/a\" }, { method = \"PUT\", body = \"b\" }] }]\n";
    fs::write(&document, text).unwrap();
    let (server, asked) = cookie_server();
    run(&["load", &server.url(), "--workload", &document, "--quiet"]).exits(&[0, 4]);
    let lines: Vec<String> = asked.lock().unwrap().iter().map(|(line, _)| line.clone()).collect();
    assert_eq!(lines, ["GET /a", "PUT /", "GET /a", "PUT /"]);
}

#[test]
fn errors_in_sessions_have_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.log");
    let file = file.to_str().unwrap();
    let server = RawServer::content_length("x");
    let url = server.url();
    let load = |rest: &[&str]| run(&[&["load", &url], rest].concat());
    let wsesslog = format!("1,0,{file}");
    for (text, message) in [
        ("/a\n/b thinks=2\n", "sessions.log: line 2, column 4: expected method=, think= or contents=, not `thinks=`"),
        ("a\n", "sessions.log: line 1, column 1: `a` is not a path: expected one that begins with /"),
        ("", "there is no session"),
    ] {
        fs::write(file, text).unwrap();
        load(&["--wsesslog", &wsesslog]).fails(2, message);
    }
    load(&["--wsesslog", "1,0,/nowhere"]).fails(2, "/nowhere: No such file");
    load(&["--wsess", "1,2"]).fails(2, "write sessions, calls per session and think time, like 100,50,10");
    load(&["--cookies", "--rate", "5"]).fails(2, "--cookies is for sessions");
    load(&["--wsess", "1,2,3", "--rate", "5"]).fails(2, "cannot be used with");
}

/// Failed sessions are counted separately, with the number of their completed calls.
#[test]
fn failed_sessions_are_counted_separately() {
    let server = RawServer::closes_after(3);
    let args = ["load", &server.url(), "--wsess", "5,9,0", "--burst-length", "9", "--pipelined", "--json"];
    let record = documents::record(&run(&args).exits(&[1, 4]).stdout);
    let sessions = record.sessions.unwrap();
    assert_eq!((sessions.started, sessions.completed, sessions.failed), (5, 0, 5), "{sessions:?}");
    assert_eq!((sessions.calls, sessions.failed_calls.unwrap().mean), (None, 9.0));
    assert_eq!(sessions.failed_connections.unwrap().mean, 1.0);
}
