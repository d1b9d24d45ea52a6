//! What is done to the agents of a farm, and when.

use std::str::FromStr;

use meikyo_units::{Nanos, ParseQuantityError};
use thiserror::Error;

use super::{Cache, FarmOptions, Faults, ParseFaultError};
use crate::{Oid, ParseOidError};

/// Something that is done to some agents at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time since the farm's start.
    pub at: Nanos,
    /// The action of the line.
    pub action: Action,
    /// Ordinals of the agents that it is done to.
    pub agents: Vec<u32>,
}

/// What is done to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The agent restarts: sysUpTime from 0, one engine boot more, counters go on.
    Restart,
    /// The machine restarts: as [`Self::Restart`], and every counter from 0.
    Reboot,
    /// Another agent in its place: as [`Self::Restart`], with another SNMP engine at its first boot,
    /// as after an agent was installed anew.
    Replace,
    /// The interfaces get other indexes, without a sign.
    Renumber,
    /// The agent restarts, and the interfaces have other indexes then.
    RestartRenumbered,
    /// The interface counters start from 0; ifCounterDiscontinuityTime says so.
    Reset,
    /// The agent answers no more.
    Die,
    /// The agent answers again.
    Wake,
    /// Faults are changed, `KEY=VALUE` each.
    Set(Vec<String>),
    /// Interfaces and host values are cached otherwise.
    Cache(Cache),
    /// A subtree is missing from now on.
    Hide(Oid),
    /// A subtree that was hidden is there again.
    Show(Oid),
    /// An interface or the disk at a path is gone: no row of it is shown, and `ifNumber` is one less for an
    /// interface.
    Detach(String),
    /// What was detached is there again, with its old index and its counters gone on.
    Attach(String),
}

/// Why a line of a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseEventError {
    /// An action that is not known, or without what belongs to it.
    #[error(
        "`{0}` is not understood; write `at TIME ACTION DEVICES` where ACTION is one of \
         `restart`, `reboot`, `replace`, `renumber`, `restart renumbered`, `reset`, `die`, `wake`, \
         `set FAULT=VALUE ...`, `cache SPAN`, `hide OID`, `show OID`, `detach NAME`, \
         `attach NAME` of an interface or a disk"
    )]
    Line(String),
    /// A bad time.
    #[error("`{0}`: {1}")]
    Span(String, ParseQuantityError),
    /// A bad fault.
    #[error(transparent)]
    Fault(#[from] ParseFaultError),
    /// A bad OID.
    #[error(transparent)]
    Oid(#[from] ParseOidError),
    /// Names that no agent has.
    #[error(
        "`{0}` names no agent of the farm; there are `{1}` and so on, `hosts`, `switches`, `all`"
    )]
    Devices(String, String),
}

impl Event {
    /// Reads a line such as `at 5s restart node003`. `DEVICES` are folded names
    /// (`node[001-010],switch01`), `hosts`, `switches` or `all`.
    ///
    /// # Errors
    ///
    /// [`ParseEventError`] with what is allowed.
    pub fn parse(line: &str, options: &FarmOptions) -> Result<Self, ParseEventError> {
        let mut words = line.split_whitespace();
        let (Some("at"), Some(at)) = (words.next(), words.next()) else {
            return Err(ParseEventError::Line(line.into()));
        };
        let at = at.parse().map_err(|error| ParseEventError::Span(line.into(), error))?;
        let mut words: Vec<&str> = words.collect();
        let devices = words.pop().ok_or_else(|| ParseEventError::Line(line.into()))?;
        let action = action(line, &words)?;
        Ok(Self { at, action, agents: agents(devices, options)? })
    }

    /// Faults from the beginning on: `loss=5% delay=2ms` for all agents, or with names behind it.
    ///
    /// # Errors
    ///
    /// [`ParseEventError`] with what is allowed.
    pub fn faults(text: &str, options: &FarmOptions) -> Result<Self, ParseEventError> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let names = words.pop_if(|word| !word.contains('='));
        let agents = agents(names.unwrap_or("all"), options)?;
        Ok(Self { at: Nanos::ZERO, action: settings(text, &words)?, agents })
    }
}

fn action(line: &str, words: &[&str]) -> Result<Action, ParseEventError> {
    Ok(match words {
        ["restart"] => Action::Restart,
        ["restart", "renumbered"] => Action::RestartRenumbered,
        ["reboot"] => Action::Reboot,
        ["replace"] => Action::Replace,
        ["renumber"] => Action::Renumber,
        ["reset"] => Action::Reset,
        ["die"] => Action::Die,
        ["wake"] => Action::Wake,
        ["set", faults @ ..] => settings(line, faults)?,
        ["cache", span] => {
            let cache = Cache::from_str(span);
            Action::Cache(cache.map_err(|error| ParseEventError::Span(line.into(), error))?)
        }
        ["hide", oid] => Action::Hide(oid.parse()?),
        ["show", oid] => Action::Show(oid.parse()?),
        ["detach", name] => Action::Detach((*name).to_owned()),
        ["attach", name] => Action::Attach((*name).to_owned()),
        _ => return Err(ParseEventError::Line(line.into())),
    })
}

fn settings(line: &str, words: &[&str]) -> Result<Action, ParseEventError> {
    if words.is_empty() {
        return Err(ParseEventError::Line(line.into()));
    }
    let mut tried = Faults::default();
    for setting in words {
        tried.set(setting)?;
    }
    Ok(Action::Set(words.iter().map(|&word| word.to_owned()).collect()))
}

/// The ordinals of the agents with these names.
fn agents(text: &str, options: &FarmOptions) -> Result<Vec<u32>, ParseEventError> {
    let all = options.agents();
    let wrong = || ParseEventError::Devices(text.into(), options.name(0));
    let chosen: Vec<u32> = match text {
        "all" => (0..all).collect(),
        "hosts" => (0..options.hosts).collect(),
        "switches" => (options.hosts..all).collect(),
        names => {
            let names = meikyo_cluster::unfold(names).map_err(|_| wrong())?;
            let find = |name: &String| options.ordinal_of(name).ok_or_else(wrong);
            names.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Event, ParseEventError> {
        Event::parse(line, &FarmOptions::new(12, 2))
    }

    #[test]
    fn lines_name_time_action_and_agents() {
        let event = parse("at 5s restart node003").unwrap();
        assert_eq!(event.at, Nanos::from_secs(5));
        assert_eq!((event.action, event.agents), (Action::Restart, vec![2]));
        let event = parse("at 1.5s set loss=5% delay=2ms node[011-012],switch01").unwrap();
        assert_eq!(event.action, Action::Set(vec!["loss=5%".into(), "delay=2ms".into()]));
        assert_eq!(event.agents, [10, 11, 12]);
        let event = parse("at 0s cache 0.6s..1.2s switches").unwrap();
        assert_eq!(event.agents, [12, 13]);
        assert!(matches!(event.action, Action::Cache(Cache::Between(..))));
        let options = FarmOptions::new(4, 0);
        assert_eq!(Event::faults("loss=5%", &options).unwrap().agents, [0, 1, 2, 3]);
        assert_eq!(Event::faults("loss=5% node004", &options).unwrap().agents, [3]);
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        let message = |line| parse(line).unwrap_err().to_string();
        assert!(message("at 5s explode node001").starts_with("`at 5s explode node001` is not"));
        assert_eq!(
            message("at 5s restart node013"),
            "`node013` names no agent of the farm; there are `node001` and so on, `hosts`, \
             `switches`, `all`"
        );
        assert!(message("at soon restart node001").contains("begin with a number"));
        assert!(message("at 1s set loss=many node001").contains("no share"));
    }
}
