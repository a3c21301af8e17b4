//! Tests responses without the required status, length or content, and observers that read the bytes of requests and
//! responses, with HTTP/1 and HTTP/2.

use crate::call_recorder::{ObservedCall, count};
use crate::case::{Case, on_each_engine};
use crate::support::{Control, Plan};
use brimful_core::workload::{RequestClass, Workload as WorkloadDoc};
use brimful_core::{ClassId, End, Event, Observer};
use brimful_engine::Close;
use brimful_testkit::http2::{END_HEADERS, END_STREAM, frame, http2_server, kind, settings};
use brimful_testkit::{RawServer, with_length};
use brimful_workload::Shard;

on_each_engine!(responses_are_checked, observers_get_requests_and_responses);

/// Returns a plan and its server for HTTP/1, and the same for HTTP/2. The servers respond `abc` to every request.
fn plans(case: Case, classes: &[RequestClass]) -> [(Plan, RawServer); 2] {
    let http1 = RawServer::with_handler(|_| with_length(b"abc"));
    let http2 = http2_server(settings(&[]), |peer, _| {
        while let Some(stream) = peer.request() {
            let head = frame(kind::HEADERS, END_HEADERS, stream, &[0x88]);
            let body = [frame(kind::DATA, 0, stream, b"a"), frame(kind::DATA, END_STREAM, stream, b"bc")].concat();
            if !peer.send(&[head, body].concat()) {
                return;
            }
        }
    });
    let plan = |server: &RawServer| Plan::with_classes(case.engine, server.addr(), classes, Close::Server);
    [(plan(&http1), http1), (plan(&http2).with_http2(classes, 4), http2)]
}

fn class(name: &str, expect: &str) -> RequestClass {
    let toml = format!("[[class]]\nname = '{name}'\nmethod = 'POST'\npath = '/{name}'\nbody = 'xy'\n{expect}\n");
    toml::from_str::<WorkloadDoc>(&toml).unwrap().classes.remove(0)
}

fn responses_are_checked(case: Case) {
    let digest = |last: &str| {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a";
        format!("expect = {{ sha256 = '{abc}{last}', length = 3, status = '2xx' }}")
    };
    let classes = [
        class("any", ""),
        class("content", &digest("d")),
        class("other", &digest("e")),
        class("status", "expect = { status = 404 }"),
        class("length", "expect = { length = 4 }"),
    ];
    for (plan, _server) in plans(case, &classes) {
        let calls = plan.calls(500).run_closed(8);
        assert_eq!(calls.len(), 500);
        for (nth, as_expected) in [true, true, false, false, false].into_iter().enumerate() {
            let of_class = |call: &&ObservedCall| call.outcome().call.class == ClassId(nth as u16);
            let calls: Vec<ObservedCall> = calls.iter().filter(of_class).copied().collect();
            let end = if as_expected { End::Completed { status: 200 } } else { End::Unexpected { status: 200 } };
            assert_eq!(count(&calls, |other| other == end), calls.len(), "{nth}");
            assert!(calls.len() > 50, "{nth}");
        }
    }
}

/// An observer that keeps the bytes of each call's request and response.
#[derive(Default)]
struct Looker(Vec<[String; 2]>);

impl Observer for Looker {
    type PerCall = [Vec<u8>; 2];

    fn on(&mut self, call: &mut [Vec<u8>; 2], event: &Event) {
        if let Event::Ended(_) = event {
            let texts = std::mem::take(call).map(|bytes| String::from_utf8(bytes).unwrap());
            self.0.push(texts);
        }
    }

    fn reads_messages(&self) -> bool {
        true
    }

    fn on_request(&mut self, call: &mut [Vec<u8>; 2], bytes: &[u8]) {
        call[0].extend_from_slice(bytes);
    }

    fn on_body_piece(&mut self, call: &mut [Vec<u8>; 2], bytes: &[u8]) {
        call[0].extend_from_slice(bytes);
    }

    fn on_bytes(&mut self, call: &mut [Vec<u8>; 2], bytes: &[u8]) {
        call[1].extend_from_slice(bytes);
    }

    fn merge(&mut self, other: Looker) {
        self.0.extend(other.0);
    }
}

fn observers_get_requests_and_responses(case: Case) {
    let answers = ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/2 200\r\n\r\nabc"];
    for ((plan, _server), answer) in plans(case, &[class("x", "")]).into_iter().zip(answers) {
        let plan = plan.calls(50);
        let run = plan.drive(|shard: Shard| plan.clients(4, shard), Looker::default, &Control::default());
        assert_eq!(run.observer.0.len(), 50);
        for [request, received] in &run.observer.0 {
            let version = answer.split(' ').next().unwrap();
            assert!(request.starts_with(&format!("POST /x {version}\r\n")), "{request}");
            assert!(request.ends_with("\r\n\r\nxy") && request.to_lowercase().contains("\r\ncontent-length: 2\r\n"));
            assert_eq!(received, answer);
        }
    }
}
