//! What the minutes of the demo go to.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When `x` was started and how long it then fetched crates, in seconds.
const BEGAN: &str = "MEIKYO_DEMO_BEGAN";
const FETCHED: &str = "MEIKYO_DEMO_FETCHED";

/// Named spans, in the order in which they began.
pub(crate) struct Spans {
    spans: Vec<(&'static str, Duration, String)>,
    last: Instant,
}

#[expect(clippy::disallowed_methods, reason = "tells a person how long each step took")]
impl Spans {
    /// Begins with what `x` did before.
    pub(crate) fn begin() -> Self {
        let seconds = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let mut spans = Vec::new();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if let (Some(began), Some(fetched)) = (seconds(BEGAN), seconds(FETCHED)) {
            let fetched = Duration::from_secs(fetched);
            spans.push(("download", fetched, "crates".to_owned()));
            let rest = Duration::from_secs(now.saturating_sub(began)).saturating_sub(fetched);
            spans.push(("prepare", rest, "the compiler's packages, and `./x` itself".to_owned()));
        }
        Self { spans, last: Instant::now() }
    }

    /// Ends the span that began with the last one's end.
    pub(crate) fn end(&mut self, name: &'static str, what: impl Into<String>) {
        let now = Instant::now();
        self.spans.push((name, now - self.last, what.into()));
        self.last = now;
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Duration = self.spans.iter().map(|(_, span, _)| *span).sum();
        let downloads = self.spans.iter().filter(|(name, ..)| *name == "download");
        let downloads: Duration = downloads.map(|(_, span, _)| *span).sum();
        writeln!(
            f,
            "{} s in all, {} s without downloads:",
            all.as_secs(),
            (all - downloads).as_secs()
        )?;
        for (name, span, what) in &self.spans {
            writeln!(f, "  {name:<9} {:>4} s  {what}", span.as_secs())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn downloads_are_counted_apart() {
        let spans = [("download", 7), ("compile", 90), ("download", 5)];
        let spans = spans.map(|(name, s)| (name, Duration::from_secs(s), "it".to_owned()));
        let spans = Spans { spans: spans.into(), last: Instant::now() };
        let text = spans.to_string();
        assert!(text.starts_with("102 s in all, 90 s without downloads:\n"), "{text}");
        assert!(text.contains("\n  compile     90 s  it\n"), "{text}");
    }
}
