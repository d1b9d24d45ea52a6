//! What stands for values as bytes where nobody asked for them.

/// What can be written as bytes: with the feature `wire`, what `serde` knows; without it, every type.
pub trait Wire {}
impl<T> Wire for T {}

/// The methods of [`State`](crate::State) that make bytes of the fields given, for a state that is
/// implemented by hand. Without the feature `wire`, this is nothing.
#[macro_export]
macro_rules! bytes_of_fields {
    ($($field:ident),* $(,)?) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_variants {
    ($($variant:ident),+) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_arms {
    ($(($($pattern:tt)+) => [$($field:ident)*]),*) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_copied {
    () => {};
}

/// The same for what a collection keeps.
macro_rules! bytes_of_inside {
    () => {};
}
pub(crate) use bytes_of_inside;
