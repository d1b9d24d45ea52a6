//! The last program of `cargo test`: repeats which tests could not run, and why.
#![expect(clippy::print_stdout, reason = "a person reads it")]

fn main() -> std::io::Result<()> {
    let skipped = meikyo_testing::noted()?;
    if !skipped.is_empty() {
        println!("\nTests that could not run here:");
    }
    for line in skipped {
        println!("  {line}");
    }
    Ok(())
}
