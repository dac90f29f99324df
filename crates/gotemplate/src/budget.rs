//! The budget of renderings.

use windlass_meta::budget::RENDER_COST;

/// What renderings may cost together. A unit is about a byte of memory, or a few nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub(crate) left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(RENDER_COST)
    }
}

impl Budget {
    /// A budget of so many units.
    pub fn of(units: usize) -> Self {
        Self { left: units }
    }

    /// Charges a cost; false if it is more than is left. Then nothing is left.
    pub fn spend(&mut self, units: usize) -> bool {
        let rest = self.left.checked_sub(units);
        self.left = rest.unwrap_or(0);
        rest.is_some()
    }

    /// What is left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }
}
