//! Whether a greeting can be taken.

use meikyo_recording::{TableSchema, layout};

use super::{Permit, damaged};
use crate::gaps;
use crate::limits::{HOLDS_MAX, OWN_STREAMS, SENDER_BYTES_MAX, STREAMS_MAX, TABLES_MAX};
use crate::wire::{Code, Declared, Hello, Refusal, VERSION};

/// Whether a receiver would take a greeting if its token allowed it; else what it would say.
pub(crate) fn check_greeting(hello: &Hello) -> Result<(), String> {
    let joined = |declared: &Declared| join(&mut gaps::tables(), &declared.tables);
    check(&Permit::anybody(), hello)
        .and_then(|()| hello.streams.iter().try_for_each(joined))
        .map_err(|refusal| refusal.text)
}

/// Whether a text can name a sender.
fn is_sender(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= SENDER_BYTES_MAX
        && text.chars().all(|c| c.is_alphanumeric() || "-_.:@".contains(c))
}

pub(super) fn check(permit: &Permit, hello: &Hello) -> Result<(), Refusal> {
    let Hello { version, sender, cluster, streams, holds, .. } = hello;
    if *version > VERSION {
        let text = format!(
            "the sender speaks version {version}, and this receiver understands versions up to \
             {VERSION}: update the receiver first"
        );
        return Err(Refusal { code: Code::Version, text });
    }
    if !is_sender(sender) {
        let text = format!(
            "a sender's name has 1 to {SENDER_BYTES_MAX} octets: letters, digits and `-_.:@`"
        );
        return Err(damaged(&text));
    }
    if !permit.allows(sender) {
        let allowed = permit.senders.join(", ");
        let text = format!("the token is for {allowed}, not for `{sender}`");
        return Err(Refusal { code: Code::Forbidden, text });
    }
    if let Some(cluster) = cluster {
        check_cluster(sender, cluster)?;
    }
    if let Some(identity) = &hello.identity {
        check_identity(sender, cluster.as_deref(), identity)?;
    }
    if streams.is_empty() || streams.len() > STREAMS_MAX {
        let text = format!("a sender declares 1 to {STREAMS_MAX} streams, not {}", streams.len());
        return Err(Refusal { code: Code::TooLarge, text });
    }
    if holds.len() > HOLDS_MAX {
        let text = format!(
            "a greeting tells of at most {HOLDS_MAX} lives and streams, not {}",
            holds.len()
        );
        return Err(Refusal { code: Code::TooLarge, text });
    }
    streams.iter().try_for_each(|declared| check_stream(declared, cluster.is_some()))
}

/// A sender writes into the recording of the cluster that stands in its name, so that a token for
/// `west:*` opens no recording but that of `west`.
fn check_cluster(sender: &str, cluster: &str) -> Result<(), Refusal> {
    if !layout::is_name(cluster) {
        return Err(damaged(&format!(
            "`{cluster}` cannot name a cluster: letters, digits, `_`, `-` and `.` are allowed, a letter \
             or digit first, and at most 100 of them"
        )));
    }
    if sender.rsplit_once(':').is_none_or(|(own, _)| own != cluster) {
        let text = format!(
            "`{sender}` may not write into the recording of cluster `{cluster}`: that is for senders \
             called `{cluster}:...`"
        );
        return Err(Refusal { code: Code::Forbidden, text });
    }
    Ok(())
}

/// What collectors that stand by for each other are called together stands before the last `@` of the
/// name of each, so that none can join those of another cluster.
fn check_identity(sender: &str, cluster: Option<&str>, identity: &str) -> Result<(), Refusal> {
    let is_one =
        sender.rsplit_once('@').is_some_and(|(own, host)| own == identity && !host.is_empty());
    if cluster.is_some() && is_one {
        return Ok(());
    }
    let text = format!(
        "`{sender}` cannot stand by as one of `{identity}`: that is for collectors called `{identity}@...` \
         that measure a cluster"
    );
    Err(Refusal { code: Code::Forbidden, text })
}

fn check_stream(declared: &Declared, has_cluster: bool) -> Result<(), Refusal> {
    let Declared { stream, tables } = declared;
    let is_taken = !has_cluster && OWN_STREAMS.contains(&stream.as_str());
    if !layout::is_name(stream) || stream == layout::LOG || is_taken {
        return Err(damaged(&format!(
            "`{stream}` cannot name a sender's stream: letters, digits, `_`, `-` and `.` are \
             allowed, a letter or digit first, and some names are taken"
        )));
    }
    let own = gaps::tables();
    for table in tables {
        if own.iter().any(|own| own.name == table.name) {
            return Err(damaged(&format!("the receiver itself fills table `{}`", table.name)));
        }
        table.check().map_err(|error| damaged(&error.to_string()))?;
    }
    Ok(())
}

/// Adds tables to those of a stream: columns that one did not have, and whole tables.
pub(super) fn join(tables: &mut Vec<TableSchema>, new: &[TableSchema]) -> Result<(), Refusal> {
    for new in new {
        let Some(known) = tables.iter_mut().find(|table| table.name == new.name) else {
            tables.push(new.clone());
            continue;
        };
        for column in &new.columns {
            match known.columns.iter().find(|own| own.name == column.name) {
                None => known.columns.push(column.clone()),
                Some(own) if own.kind == column.kind => {}
                Some(_) => {
                    let text = format!(
                        "column `{}` of table `{}` is of another kind than that of other senders",
                        column.name, new.name
                    );
                    return Err(damaged(&text));
                }
            }
        }
        // What each of two senders may declare, both together may not.
        known.check().map_err(|error| damaged(&format!("with those of other senders: {error}")))?;
    }
    if tables.len() > TABLES_MAX {
        let text = format!("a stream has at most {TABLES_MAX} tables, not {}", tables.len());
        return Err(Refusal { code: Code::TooLarge, text });
    }
    Ok(())
}
