//! The positions of a timetable as classes.

use std::{collections::BTreeSet, fmt};

use super::timetable::Scale;

/// The positions, widths and numbers of hours that a page uses.
#[derive(Debug, Default)]
pub struct Positions(BTreeSet<(char, i64)>);

impl Positions {
    /// The classes of a position and a width.
    pub fn at(&mut self, x: u32, width: u32) -> String {
        // The least width can be seen.
        let width = width.max(25);
        self.0.extend([('x', x.into()), ('w', width.into())]);
        format!("x{x} w{width}")
    }

    /// The class of a position.
    pub fn x(&mut self, x: u32) -> String {
        self.0.insert(('x', x.into()));
        format!("x{x}")
    }

    /// The class of a number of hours.
    pub fn minutes(&mut self, scale: &Scale) -> String {
        self.0.insert(('m', scale.minutes()));
        format!("m{}", scale.minutes())
    }

    /// Adds those of another part of the page.
    pub fn append(&mut self, Self(mut others): Self) {
        self.0.append(&mut others);
    }
}

/// The rules of the classes.
impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = |f: &mut fmt::Formatter<'_>, n: i64| write!(f, "{}.{:02}", n / 100, n % 100);
        for (kind, n) in &self.0 {
            write!(f, ".{kind}{n}{{")?;
            match kind {
                'x' => write!(f, "left:").and_then(|()| decimal(f, *n))?,
                'w' => write!(f, "width:").and_then(|()| decimal(f, *n))?,
                _ => write!(f, "--hours:").and_then(|()| decimal(f, n * 100 / 60))?,
            }
            f.write_str(if *kind == 'm' { "}\n" } else { "%}\n" })?;
        }
        Ok(())
    }
}
