//! Modules that need each other in a circle: none of them can be read, tested or moved by itself.
//!
//! What is looked at are the paths in the text (`crate::a::B`, `super::c`, a child's name), so a circle
//! through a macro or a glob of a parent is not seen. What a module takes from those above it, its own
//! parents, makes no circle: a directory is read with the file that heads it.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Fault;
use crate::tidy::rules::Rules;
use crate::tidy::sources::Source;

/// The names of a module and of those that it lies in; none for the root of a crate.
type Module = Vec<String>;

/// Circles in the programs of every crate.
pub(crate) fn check(files: &[Source], rules: &Rules) -> Vec<Fault> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for file in files {
        if let Some((of, module)) = module_of(&file.path) {
            crates.entry(of).or_default().insert(module, file);
        }
    }
    for modules in crates.values_mut() {
        let of_tests: Vec<_> = modules.iter().flat_map(|(own, file)| tests_of(own, file)).collect();
        modules.retain(|module, _| !of_tests.iter().any(|tests| module.starts_with(tests)));
    }
    let circles = crates.values().flat_map(circles_of);
    let known = |circle: &Vec<&str>| circle.iter().any(|path| rules.excepts(path, "circle"));
    let new = circles.filter(|circle| !known(circle)).map(|circle| {
        let text = format!(
            "needs itself in a circle of {} modules ({}); move what they share below both",
            circle.len(),
            circle.join(", ")
        );
        Fault::new(circle[0], 0, text)
    });
    new.collect()
}

/// The crate and the module of a file; `None` for tests and what is no part of a crate.
fn module_of(path: &str) -> Option<(&str, Module)> {
    let (of, rest) = path.split_once("/src/")?;
    let module: Module = rest.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.iter().any(|name| name == "tests" || name.ends_with("_tests")) {
        return None;
    }
    let is_root = module.len() == 1 && matches!(module[0].as_str(), "lib" | "main");
    Some((of, if is_root { Module::new() } else { module }))
}

/// The modules that a file has only for tests, in files of their own.
fn tests_of(own: &Module, file: &Source) -> Vec<Module> {
    let lines: Vec<_> = file.lines().map(|(_, line)| line.trim()).collect();
    let pairs = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    let names = pairs.filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'));
    names.map(|name| [own.as_slice(), &[name.to_owned()]].concat()).collect()
}

fn circles_of<'a>(modules: &BTreeMap<Module, &'a Source>) -> Vec<Vec<&'a str>> {
    let needs: BTreeMap<_, _> =
        modules.iter().map(|(module, file)| (module, needed(module, file, modules))).collect();
    let reach: BTreeMap<_, _> =
        modules.keys().map(|module| (module, reached(module, &needs))).collect();
    let mut circles = BTreeSet::new();
    for module in modules.keys().filter(|module| reach[module].contains(*module)) {
        let circle = reach[module].iter().filter(|other| reach[*other].contains(module));
        circles.insert(circle.map(|other| modules[*other].path.as_str()).collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

/// Everything that a module needs, and what that needs.
fn reached<'a>(
    from: &Module,
    needs: &'a BTreeMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<_> = needs[from].iter().collect();
    while let Some(module) = left.pop() {
        if reached.insert(module) {
            left.extend(&needs[module]);
        }
    }
    reached
}

/// The modules that a file names, without those that it lies in and without what it only hands on.
fn needed(own: &Module, file: &Source, modules: &BTreeMap<Module, &Source>) -> BTreeSet<Module> {
    let text: Vec<_> =
        file.programs_lines().map(|(_, line)| line.split("//").next().unwrap_or(line)).collect();
    let mut needed = BTreeSet::new();
    for path in paths(&tokens(&text.join("\n"))) {
        let Some(target) = resolved(own, &path.words, modules) else { continue };
        let hands_on = path.public && target.starts_with(own);
        if !own.starts_with(&target) && !hands_on {
            needed.insert(target);
        }
    }
    needed
}

/// The module that a path leads into.
fn resolved(own: &Module, path: &[&str], modules: &BTreeMap<Module, &Source>) -> Option<Module> {
    let mut rest = path;
    let mut module = match rest.first()? {
        &"crate" => Module::new(),
        &"super" => own[..own.len().checked_sub(1)?].to_vec(),
        &"self" => own.clone(),
        first => {
            let child = [own.as_slice(), &[(*first).to_owned()]].concat();
            return modules.contains_key(&child).then(|| deepest(child, &rest[1..], modules));
        }
    };
    rest = &rest[1..];
    while let Some((&"super", behind)) = rest.split_first() {
        module.pop()?;
        rest = behind;
    }
    Some(deepest(module, rest, modules))
}

fn deepest(mut module: Module, rest: &[&str], modules: &BTreeMap<Module, &Source>) -> Module {
    for name in rest {
        module.push((*name).to_owned());
        if !modules.contains_key(&module) {
            module.pop();
            break;
        }
    }
    module
}

/// A path of at least two words.
struct Path<'a> {
    words: Vec<&'a str>,
    /// Whether it stands behind `pub use`.
    public: bool,
}

/// Words, `::`, and single marks.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn paths<'a>(tokens: &[&'a str]) -> Vec<Path<'a>> {
    let mut paths = Vec::new();
    let (mut at, mut public) = (0, false);
    while at < tokens.len() {
        match tokens[at] {
            // `pub use`, `pub(crate) use`
            "use" => public = matches!(before(tokens, at), Some("pub" | ")")),
            ";" => public = false,
            token if is_name(token) && before(tokens, at) != Some("::") => {
                let mut found = Vec::new();
                at = tree(tokens, at, &[], &mut found);
                let found = found.into_iter().filter(|words| words.len() > 1);
                paths.extend(found.map(|words| Path { words, public }));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

fn before<'a>(tokens: &[&'a str], at: usize) -> Option<&'a str> {
    tokens.get(at.checked_sub(1)?).copied()
}

/// Reads a path, and all that its braces hold; returns where it ends.
fn tree<'a>(
    tokens: &[&'a str],
    mut at: usize,
    prefix: &[&'a str],
    found: &mut Vec<Vec<&'a str>>,
) -> usize {
    let mut words = prefix.to_vec();
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at = match tokens[at] {
                        token if is_name(token) || token == "{" => tree(tokens, at, &words, found),
                        _ => at + 1,
                    };
                }
                return at + 1;
            }
            Some(token) if is_name(token) => words.push(token),
            _ => break,
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    found.push(words);
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::test_rules;
    use crate::tidy::sources::test_source;

    fn faults(files: &[(&str, &str)], rules: &str) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| test_source(path, text)).collect();
        check(&files, &test_rules(rules)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modules_that_need_each_other_are_a_fault() {
        let files = [
            ("x/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("x/src/a.rs", "use crate::b::B;\n"),
            ("x/src/b.rs", "use super::{c::{self, C}, d};\n"),
            ("x/src/c.rs", "fn f() { crate::a::g(); }\n"),
        ];
        let expected = "x/src/a.rs: needs itself in a circle of 3 modules (x/src/a.rs, \
                        x/src/b.rs, x/src/c.rs); move what they share below both";
        assert_eq!(faults(&files, ""), [expected]);
        let except = "[[except]]\npath = \"x/src/b.rs\"\nwhat = \"circle\"\nreason = \"one state machine\"\n";
        assert_eq!(faults(&files, except), Vec::<String>::new());
    }

    #[test]
    fn parents_tests_comments_and_other_crates_make_no_circle() {
        let files = [
            ("x/src/a.rs", "mod inner;\npub use inner::Inner;\nuse crate::b::B;\n"),
            ("x/src/a/inner.rs", "use super::Outer;\n"),
            ("x/src/b.rs", "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            ("x/src/b/tests.rs", "use crate::a::Inner;\n"),
            ("y/src/b.rs", "use crate::a::Inner;\n"),
            ("z/src/a.rs", "#[cfg(test)]\nmod laws;\nuse crate::b::B;\n"),
            ("z/src/a/laws.rs", "use crate::b::B;\n"),
            ("z/src/b.rs", "#[cfg(test)]\nmod walk;\n"),
            ("z/src/b/walk.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(faults(&files, ""), Vec::<String>::new());
    }

    #[test]
    fn a_circle_of_a_parent_and_its_neighbour_through_a_child_is_seen() {
        let files = [
            ("x/src/a.rs", "fn f() { inner::g(); }\n"),
            ("x/src/a/inner.rs", "use crate::b::B;\n"),
            ("x/src/b.rs", "use crate::a;\n"),
        ];
        assert_eq!(faults(&files, "").len(), 1);
    }
}
