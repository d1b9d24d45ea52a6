//! Names of ports that differ in their last number only: `gi7`, `GigabitEthernet1/0/7`.

use crate::PortNumber;
use crate::dialect::linux::decimal;

/// How the commands of a vendor call ports.
pub(in crate::dialect) struct PortNames {
    /// What comes before the number in texts that are made.
    pub(in crate::dialect) written: &'static str,
    /// What may come before it in texts that are read, in lower case, without blanks.
    pub(in crate::dialect) read: &'static [&'static str],
}

impl PortNames {
    /// The name of a port.
    pub(in crate::dialect) fn name(&self, port: PortNumber) -> String {
        format!("{}{port}", self.written)
    }

    /// The first and the last port of a part of a list: `gi7`, `gi1-4`, `gi1-gi4`; `None` if it is no
    /// such part.
    pub(in crate::dialect) fn span(&self, part: &str) -> Option<(PortNumber, PortNumber)> {
        let part = part.to_ascii_lowercase();
        let (first, last) = part.split_once('-').unwrap_or((part.as_str(), part.as_str()));
        let number = |text: &str| {
            self.read.iter().find_map(|before| decimal(text.strip_prefix(before)?)).map(PortNumber)
        };
        let first = number(first)?;
        let last = number(last).or_else(|| decimal(last).map(PortNumber))?;
        (first <= last).then_some((first, last))
    }
}
