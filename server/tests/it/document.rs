//! The OpenAPI document that is checked in is the one that the server gives.

use crate::client::serve;
use crate::recorded::recording;

#[test]
fn the_document_that_is_checked_in_is_the_one_that_is_served() {
    let checked_in = include_str!("../../openapi.json");
    let served = serve(recording());
    let given = served.get("/api/v1/openapi.json").text();
    assert!(
        given == checked_in,
        "write it anew: cargo run -p meikyo-server --example openapi > server/openapi.json"
    );
}
