//! How programs over ranks are built here, and whether they can be built and run with an MPI library.

/// What cargo is told in addition. Building the kernel and its models once more takes longer than running them:
/// no optimisation.
pub(crate) const QUICKLY: [&str; 4] = [
    "--config",
    "profile.dev.package.meikyo-sim.opt-level=0",
    "--config",
    "profile.dev.package.meikyo-models.opt-level=0",
];

/// What is missing to build and run with `library`, which Debian has in `packages`.
pub(crate) fn lacking(library: &str, packages: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: String| {
        std::env::split_paths(&path).any(|directory| directory.join(&program).is_file())
    };
    if !found(format!("mpicc.{library}")) || !found(format!("mpirun.{library}")) {
        return Some(format!("no {library} here; `apt-get install {packages}`"));
    }
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let clang = versions.map(|entry| entry.path().join("lib")).any(|directory| {
        let libraries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names = libraries.map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("libclang"))
    });
    let elsewhere = std::env::var_os("LIBCLANG_PATH").is_some();
    (!clang && !elsewhere).then(|| "no libclang here; `apt-get install libclang-dev`".to_owned())
}
