//! Messages about programs that start and end.

use brimful_monitor::{Membership, ProcessSelector, Sample};

/// The last known state of each watched program, with which changes are detected.
pub struct ProgramStates {
    programs: Vec<(ProcessSelector, State)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No sample has been taken yet.
    Unknown,
    /// No process of the program has run since the start of the watch.
    Awaited,
    Running,
    Ended,
    /// This user has no permission to see the program's processes.
    Hidden,
}

impl ProgramStates {
    /// Sets the state of all programs to unknown.
    pub fn new(programs: &[ProcessSelector]) -> ProgramStates {
        ProgramStates { programs: programs.iter().map(|program| (program.clone(), State::Unknown)).collect() }
    }

    /// Messages about changes since the previous sample: a program is missing, has started or has ended.
    pub fn status_messages(&mut self, sample: &Sample) -> Vec<String> {
        let programs = sample.groups.process.iter().flatten();
        let mut news = Vec::new();
        for ((selector, state), program) in self.programs.iter_mut().zip(programs) {
            let is_running = !program.pids.is_empty() || program.membership == Membership::Shared;
            let (next, said) = match (*state, is_running, &*selector) {
                (State::Hidden, false, _) => continue,
                (_, false, _) if program.membership == Membership::Hidden => {
                    let said = format!("this user may not see the process {selector}: run as root");
                    (State::Hidden, Some(said))
                }
                (State::Unknown, true, _) => (State::Running, None),
                (State::Unknown, false, _) => {
                    (State::Awaited, Some(format!("no process {selector} is running yet: waiting for one")))
                }
                (State::Awaited | State::Ended | State::Hidden, true, _) => {
                    (State::Running, Some(format!("a process {selector} is running now")))
                }
                (State::Running, false, ProcessSelector::Pid(_)) => {
                    (State::Ended, Some(format!("the process {selector} has ended")))
                }
                (State::Running, false, _) => {
                    (State::Ended, Some(format!("the last process {selector} has ended: waiting for another")))
                }
                (state, ..) => (state, None),
            };
            *state = next;
            news.extend(said);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_monitor::{PerGroup, ProgramSample};

    fn sample(programs: Vec<ProgramSample>) -> Sample {
        Sample { groups: PerGroup { process: Some(programs), ..PerGroup::default() }, ..Sample::default() }
    }

    #[test]
    fn each_change_is_reported_once() {
        let mut program_states =
            ProgramStates::new(&[ProcessSelector::Name("nginx".to_owned()), ProcessSelector::Pid(7)]);
        let mut news = |nginx: &[u32], other: &[u32]| {
            let program = |pids: &[u32]| ProgramSample { pids: pids.into(), ..ProgramSample::default() };
            program_states.status_messages(&sample(vec![program(nginx), program(other)])).join("; ")
        };
        assert_eq!(news(&[], &[7]), "no process named `nginx` is running yet: waiting for one");
        assert_eq!(news(&[], &[7]), "");
        assert_eq!(news(&[3, 4], &[]), "a process named `nginx` is running now; the process with pid 7 has ended");
        assert_eq!(news(&[], &[]), "the last process named `nginx` has ended: waiting for another");
        assert_eq!(news(&[5], &[]), "a process named `nginx` is running now");
        assert_eq!(program_states.status_messages(&Sample::default()), Vec::<String>::new());
    }

    #[test]
    fn shared_and_hidden_processes_are_not_reported_as_missing() {
        let mut program_states = ProgramStates::new(&[80, 443].map(ProcessSelector::Port));
        let mut news = |https| {
            let [http, https] =
                [Membership::Hidden, https].map(|membership| ProgramSample { membership, ..ProgramSample::default() });
            program_states.status_messages(&sample(vec![http, https])).join("; ")
        };
        let hidden = "this user may not see the process that listens on TCP port 80: run as root";
        assert_eq!(news(Membership::Shared), hidden);
        assert_eq!(news(Membership::Shared), "");
    }
}
