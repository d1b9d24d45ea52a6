//! The macro that declares a table.

/// Declares a table: a module with the table's `NAME`, its `schema()` and a typed
/// [`Handle`](crate::schema::Handle) for each column.
///
/// Behind the type of a column stand its [`Meaning`](crate::schema::Meaning), its name and one
/// sentence, and then the methods of [`Column`](crate::schema::Column) that say more of it; behind
/// the table's sentence those of [`TableSchema`](crate::schema::TableSchema).
///
/// ```
/// meikyo_recording::table! {
///     /// Fans.
///     pub fans: Readings, "fans", "fans, by name", titled("Fans"), parted("fan", "fastest");
///     DEVICE: Symbol, Label, "device", "name in the cluster file";
///     FAN: Symbol, Label, "fan", "as the machine calls it";
///     RPM: f64, Gauge, "rpm", "turns a minute", called("fan speed"), shown(1);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = fans::schema();
/// assert_eq!(schema.columns[fans::RPM.position()].words(), "fan speed");
/// # let dir = tempfile::tempdir()?;
/// # let options = meikyo_recording::StreamOptions::COLLECTOR;
/// # let kind = meikyo_recording::Kind::Measured;
/// # let mut writer =
/// #     meikyo_recording::StreamWriter::open(dir.path(), kind, "s", vec![schema], options)?;
/// let fan = writer.symbol("front");
/// let mut batch = writer.batch(0);
/// batch.begin_row(1_700_000_000_000_000_000);
/// batch.put(fans::FAN, fan);
/// batch.put(fans::RPM, 1_200.0);
/// # Ok(())
/// # }
/// ```
///
/// A value of another type is refused by the compiler:
///
/// ```compile_fail
/// meikyo_recording::table! {
///     /// Fans.
///     pub fans: Readings, "fans", "fans, by name";
///     RPM: f64, Gauge, "rpm", "turns";
/// }
/// fn write(batch: &mut meikyo_recording::Batch) {
///     batch.put(fans::RPM, 1_200_u64);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! table {
    (@kind Symbol) => { $crate::Symbol };
    (@kind Text) => { $crate::schema::Text };
    (@kind u64) => { u64 };
    (@kind i64) => { i64 };
    (@kind f64) => { f64 };
    (
        $(#[$about:meta])*
        $visibility:vis $module:ident: $role:ident, $table:literal, $doc:literal
        $(, $say:ident($($said:expr),*))*;
        $($handle:ident: $kind:ident, $meaning:ident, $name:literal, $of:literal
            $(, $set:ident($($to:expr),*))*;)+
    ) => {
        $(#[$about])*
        $visibility mod $module {
            // What a declaration names, such as units, is in scope around it.
            use super::*;
            const _: &str = $module::NAME;

            /// What recordings call the table.
            pub const NAME: &str = $table;

            const COLUMNS: &[&str] = &["time", $($name),+];

            $(
                #[doc = concat!("The column `", $name, "`; `docs/tables.md` says what it is.")]
                pub const $handle: $crate::schema::Handle<$crate::table!(@kind $kind)> =
                    $crate::schema::Handle::named(COLUMNS, $name);
            )+

            /// The declaration as it stands in recordings.
            pub fn schema() -> $crate::TableSchema {
                let columns = vec![$(
                    $crate::Column::new(
                        $name,
                        <$crate::table!(@kind $kind) as $crate::schema::Cell>::KIND,
                        $crate::Meaning::$meaning,
                        $of,
                    )$(.$set($($to),*))*
                ),+];
                $crate::TableSchema::new(NAME, $doc, columns)
                    .for_role($crate::schema::Role::$role)$(.$say($($said),*))*
            }
        }
    };
}
