//! The query of a request taken apart: every parameter is known by name, or refused.

use meikyo_live::Span;
use meikyo_units::{Nanos, WallTime};

use crate::errors::ApiError;

/// Most octets of a query.
const QUERY_BYTES_MAX: usize = 16 << 10;

/// Most parameters of a query.
const PARAMETERS_MAX: usize = 256;

/// Most pixels of one answer.
pub(crate) const WIDTH_MAX: u32 = 10_000;

/// The parameters of one request that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters of a query as it stands in the address.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let query = query.unwrap_or_default();
        if query.len() > QUERY_BYTES_MAX {
            let text = format!("the query has {} octets, at most {QUERY_BYTES_MAX}", query.len());
            return Err(ApiError::bad(text, "query"));
        }
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .take(PARAMETERS_MAX + 1)
            .collect();
        if pairs.len() > PARAMETERS_MAX {
            let text = format!("the query has more than {PARAMETERS_MAX} parameters");
            return Err(ApiError::bad(text, "query"));
        }
        Ok(Self(pairs))
    }

    /// Takes the parameter of that name; the last one when it is repeated.
    pub(crate) fn optional(&mut self, name: &str) -> Option<String> {
        self.take_all(name).pop()
    }

    /// Takes all parameters of that name.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(of, _)| of == name);
        self.0 = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a parameter that has to be there.
    pub(crate) fn need(&mut self, name: &str) -> Result<String, ApiError> {
        let missing = || ApiError::bad(format!("the parameter `{name}` is missing"), name);
        self.optional(name).ok_or_else(missing)
    }

    /// Takes a whole number between two others; `default` when it is not there.
    pub(crate) fn number(
        &mut self,
        name: &str,
        default: u32,
        allowed: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, ApiError> {
        let Some(text) = self.optional(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        number.ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            let text = format!("`{name}` is a whole number from {least} to {most}, not `{text}`");
            ApiError::bad(text, name)
        })
    }

    /// Whether there is a parameter of that name that nobody has taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(of, _)| of == name)
    }

    /// Takes all parameters of that name, which are whole numbers.
    pub(crate) fn take_numbers(&mut self, name: &str) -> Result<Vec<u64>, ApiError> {
        let number = |text: String| {
            let wrong = || ApiError::bad(format!("`{text}` is no number of a {name}"), name);
            text.parse().map_err(|_| wrong())
        };
        self.take_all(name).into_iter().map(number).collect()
    }

    /// Takes `from` and `to`; the whole recording when they are not there.
    pub(crate) fn span(&mut self, recording: Span) -> Result<(WallTime, WallTime), ApiError> {
        self.span_named(recording, ["from", "to"])
    }

    /// Takes both ends of a span by the names that they have; those of `recording` when they are not there.
    pub(crate) fn span_named(
        &mut self,
        recording: Span,
        [begin, end]: [&str; 2],
    ) -> Result<(WallTime, WallTime), ApiError> {
        let mut instant = |name: &str, default| {
            let text = self.optional(name);
            text.map_or(Ok(default), |text| {
                parse_instant(&text, recording.now).ok_or_else(|| {
                    let text = format!(
                        "`{text}` is not a time: write µs since 1970, \
                         `2026-11-21T20:14:00Z`, `-15min` or `now`"
                    );
                    ApiError::bad(text, name)
                })
            })
        };
        let (from, to) = (instant(begin, recording.from)?, instant(end, recording.now)?);
        if from >= to {
            return Err(ApiError::bad(format!("`{begin}` is not before `{end}`"), begin));
        }
        Ok((from, to))
    }

    /// Takes what is left as texts that labels are wanted to have.
    pub(crate) fn labels(self, known: &[String]) -> Result<Vec<(String, Vec<String>)>, ApiError> {
        let mut labels: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in self.0 {
            if !known.contains(&name) {
                let known = known.join(", ");
                let text =
                    format!("`{name}` is no parameter and no label of the table; labels: {known}");
                return Err(ApiError::bad(text, &name));
            }
            match labels.iter_mut().find(|(label, _)| *label == name) {
                Some((_, texts)) => texts.push(value),
                None => labels.push((name, vec![value])),
            }
        }
        Ok(labels)
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        self.labels(&[]).map(drop)
    }
}

/// An instant as it is written: µs since 1970, RFC 3339, a span before `now`, or `now`.
pub(crate) fn parse_instant(text: &str, now: WallTime) -> Option<WallTime> {
    if text == "now" {
        return Some(now);
    }
    if let Ok(us) = text.parse::<i64>()
        && (us >= 0 || text.len() > 12)
    {
        return Some(WallTime::from_nanos(us.checked_mul(1_000)?));
    }
    if let Some(span) = text.strip_prefix('-') {
        return Some(now.before(span.parse::<Nanos>().ok()?));
    }
    let instant = text.parse::<jiff::Timestamp>().ok()?;
    Some(WallTime::from_nanos(i64::try_from(instant.as_nanosecond()).ok()?))
}

/// µs since the epoch, rounded down.
pub(crate) fn micros(time: WallTime) -> i64 {
    time.as_nanos().div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_micros_or_words() {
        let now = WallTime::from_nanos(1_795_293_429_000_000_000);
        let at = |text| parse_instant(text, now).map(WallTime::as_nanos);
        assert_eq!(at("now"), Some(1_795_293_429_000_000_000));
        assert_eq!(at("-15min"), Some(1_795_292_529_000_000_000));
        assert_eq!(at("1795293429000000"), Some(1_795_293_429_000_000_000));
        assert_eq!(at("2026-11-21T20:37:09Z"), Some(1_795_293_429_000_000_000));
        for wrong in ["", "-", "yesterday", "9223372036854775807", "1e3"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_nobody_takes_is_a_label_or_refused() {
        let mut parameters = Parameters::parse(Some("width=7&device=a&device=b%2A&x=1")).unwrap();
        assert_eq!(parameters.number("width", 600, 1..=9).unwrap(), 7);
        assert_eq!(parameters.optional("x").as_deref(), Some("1"));
        let labels = parameters.labels(&["device".into()]).unwrap();
        assert_eq!(labels, [("device".to_owned(), vec!["a".to_owned(), "b*".to_owned()])]);
        let other = Parameters::parse(Some("colour=red")).unwrap();
        assert!(other.finish().unwrap_err().body().error.contains("`colour`"));
        assert!(Parameters::parse(Some(&"a&".repeat(300))).is_err());
        assert!(Parameters::parse(Some(&"a".repeat(20_000))).is_err());
    }
}
