//! Prints the OpenAPI document: `cargo run -p meikyo-server --example openapi > server/openapi.json`

#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn main() {
    print!("{}", meikyo_server::openapi_document());
}
