//! Variables in texts.
