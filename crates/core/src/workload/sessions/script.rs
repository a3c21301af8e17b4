//! Scripted sessions: sequences of bursts of requests, like those of httperf's `--wsesslog`.
//!
//! ```toml
//! [[load.sessions.script]]
//! bursts = [
//!   { calls = [{ path = "/foo.html" }, { path = "/pict1.gif" }], think_s = 2.0 },
//!   { calls = [{ path = "/foo2.html", method = "POST", body = "Post data" }] },
//! ]
//! ```
//!
//! A call can name a class of the workload; otherwise, it belongs to the first class. The results of the call are
//! counted in this class, and fields that the call does not specify are taken from this class. The calls of a burst
//! after the first are sent when the first call is answered.

use super::super::{Load, Workload, WorkloadError};
use super::Sessions;
use crate::JsonSchema;
use crate::event::RequestId;
use crate::url::is_absolute_url;
use serde::{Deserialize, Serialize};

/// A scripted session: a sequence of bursts, which are groups of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The bursts, in order; at least one.
    pub bursts: Vec<ScriptedBurst>,
}

/// One burst of a scripted session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedBurst {
    /// Think time: seconds from the last answer of this burst to the next burst. If absent, the time is drawn from
    /// `think_s` of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// The calls of the burst, at least one. The calls after the first are sent when the first call is answered.
    pub calls: Vec<ScriptedCall>,
}

/// One call of a scripted burst. Absent fields have the values of its class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Path and query; if absent, the class's path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Name of the class in whose results the call is counted; if absent, the first class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// HTTP method; if absent, the class's method.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Request body; if absent, the class's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The request of a scripted call, after the values of its class have replaced absent fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScriptedRequest<'w> {
    /// Index of the class in whose results the call is counted.
    pub class: usize,
    /// HTTP method of the request.
    pub method: &'w str,
    /// Path and query of the request.
    pub path: &'w str,
    /// Body of the request.
    pub body: &'w str,
}

impl ScriptedRequest<'_> {
    /// The [`RequestId`] of the first scripted call. All smaller identifiers are available for requests of classes.
    const FIRST_SCRIPTED_ID: u64 = 1 << 63;

    /// Returns the [`RequestId`] of a scripted call. `nth` counts the calls of all scripts, from 0.
    pub fn request_id(nth: u32) -> RequestId {
        RequestId(ScriptedRequest::FIRST_SCRIPTED_ID | u64::from(nth))
    }

    /// Returns the number of the scripted call with this [`RequestId`], as in [`request_id`](Self::request_id); `None`
    /// if the request is not scripted.
    pub fn index_of(request: RequestId) -> Option<usize> {
        request.0.checked_sub(ScriptedRequest::FIRST_SCRIPTED_ID).map(|nth| nth as usize)
    }
}

impl Workload {
    /// The sessions of the workload; `None` if the load has no sessions.
    pub fn sessions(&self) -> Option<&Sessions> {
        match &self.load {
            Some(Load::Sessions(sessions)) => Some(sessions),
            _ => None,
        }
    }

    /// Returns the requests of all scripted calls, in order. The workload must be valid.
    pub fn scripted_requests(&self) -> impl Iterator<Item = ScriptedRequest<'_>> {
        let scripts = self.sessions().map_or(&[][..], |sessions| &sessions.scripts);
        let calls = scripts.iter().flat_map(|script| &script.bursts).flat_map(|burst| &burst.calls);
        // `scripted_request` fails only if the call names an unknown class, which a valid workload does not contain.
        calls.filter_map(|call| self.scripted_request(call).ok())
    }

    fn scripted_request<'w>(&'w self, call: &'w ScriptedCall) -> Result<ScriptedRequest<'w>, String> {
        let named = |name: &String| call.class.is_empty() || *name == call.class;
        let Some(class) = self.classes.iter().position(|class| named(&class.name)) else {
            return Err(format!("there is no class `{}`: name one of those in the document", call.class));
        };
        let of_class = &self.classes[class];
        if of_class.is_template() {
            return Err(format!(
                "class `{}` has placeholders that each call fills in: name another one",
                of_class.name
            ));
        }
        let unless_empty =
            |own: &'w String, inherited: &'w String| if own.is_empty() { inherited.as_str() } else { own.as_str() };
        let path = unless_empty(&call.path, &of_class.path);
        if call.path.is_empty() && (path.is_empty() || of_class.file_set.is_some()) {
            return Err(format!("class `{}` has more than one path: write which, as path", of_class.name));
        }
        if !path.starts_with('/') && !is_absolute_url(path) {
            return Err(format!("its path is `{path}`: a path begins with `/`"));
        }
        if call.body.is_none() && !of_class.body_file.is_empty() {
            return Err(format!(
                "class `{}` has its body in a file: write the call's own, or name another",
                of_class.name
            ));
        }
        let method = unless_empty(&call.method, &of_class.method);
        let body = call.body.as_ref().unwrap_or(&of_class.body);
        Ok(ScriptedRequest { class, method, path, body })
    }

    /// Checks the scripted sessions, if the load has any.
    pub(in super::super) fn validate_scripts(&self) -> Result<(), WorkloadError> {
        let scripts = self.sessions().map_or(&[][..], |sessions| &sessions.scripts);
        let mut calls = 0_usize;
        for (script, Script { bursts }) in (1..).zip(scripts) {
            let bad = |place: String, why: &str| Err(WorkloadError::BadScript { script, place, why: why.to_owned() });
            if bursts.is_empty() {
                return bad(String::new(), "a session has 1 burst or more: add one, or leave the session out");
            }
            for (nth, burst) in (1..).zip(bursts) {
                if burst.calls.is_empty() {
                    return bad(format!(", burst {nth}"), "a burst has 1 call or more: add one, or leave it out");
                }
                if burst.think_s.is_some_and(|think_s| !(think_s.is_finite() && think_s >= 0.0)) {
                    return bad(format!(", burst {nth}"), "think_s is a number of seconds, zero or more");
                }
                for (of_burst, call) in (1..).zip(&burst.calls) {
                    if let Err(why) = self.scripted_request(call) {
                        return bad(format!(", call {of_burst} of burst {nth}"), &why);
                    }
                }
                calls += burst.calls.len();
            }
            if calls > u32::MAX as usize {
                return bad(String::new(), "this and those before have more than 4,294,967,295 calls: leave some out");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a workload with these scripts and three classes: the first has a path, the second several URLs, and the
    /// third a placeholder in its path.
    fn workload(scripts: &str) -> Workload {
        let text = format!(
            "[[class]]\nname = \"page\"\npath = \"/p\"\nmethod = \"PUT\"\nbody = \"x\"\n[[class]]\nname = \"images\"\n\
             urls = [{{ path = \"/a\" }}, {{ path = \"/b\" }}]\n[[class]]\nname = \"numbered\"\npath = \"/{{seq}}\"\n\
             [load.sessions]\nusers = 1\n{scripts}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_call_has_what_its_class_has_but_for_what_it_says() {
        let workload = workload(
            "[[load.sessions.script]]\nbursts = [{ calls = [{}, { path = \"/q\" }] }]\n\
             [[load.sessions.script]]\nbursts = [{ calls = [{ class = \"images\", path = \"/a\", method = \"POST\", \
             body = \"y\" }] }]\n",
        );
        assert_eq!(workload.validate(), Ok(()));
        let request = |class, method, path, body| ScriptedRequest { class, method, path, body };
        let expected = [request(0, "PUT", "/p", "x"), request(0, "PUT", "/q", "x"), request(1, "POST", "/a", "y")];
        assert_eq!(workload.scripted_requests().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ids_are_told_from_those_of_classes() {
        assert_eq!([0, 7].map(|nth| ScriptedRequest::index_of(ScriptedRequest::request_id(nth))), [Some(0), Some(7)]);
        assert_eq!(ScriptedRequest::index_of(RequestId(123_456)), None);
    }

    #[test]
    fn what_cannot_be_made_is_named_with_its_place() {
        for (script, message) in [
            ("bursts = []", "scripted session 1: a session has 1 burst or more"),
            ("bursts = [{ calls = [] }]", "scripted session 1, burst 1: a burst has 1 call or more"),
            ("bursts = [{ calls = [{}], think_s = -1 }]", "scripted session 1, burst 1: think_s"),
            (
                "bursts = [{ calls = [{}] }, { calls = [{}, { class = \"z\" }] }]",
                "call 2 of burst 2: there is no class `z`",
            ),
            ("bursts = [{ calls = [{ class = \"images\" }] }]", "class `images` has more than one path"),
            ("bursts = [{ calls = [{ path = \"a\" }] }]", "a path begins with `/`"),
            ("bursts = [{ calls = [{ class = \"numbered\" }] }]", "`numbered` has placeholders"),
        ] {
            let error = workload(&format!("[[load.sessions.script]]\n{script}\n")).validate().unwrap_err().to_string();
            assert!(error.contains(message), "{script}: {error}");
        }
    }
}
