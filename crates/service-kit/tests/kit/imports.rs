//! No crate has an import cycle between its files, and the modules of service-kit have an order.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The crates of the workspace.
const CRATES: [&str; 9] = [
    "bench",
    "booking-service",
    "club-directory",
    "club-issuer",
    "club-sign-in",
    "common",
    "import",
    "portfolio-service",
    "service-kit",
];

/// The path of a module in its crate; empty for `lib.rs` and `main.rs`.
type Module = Vec<String>;

/// The modules of a crate, each with the code of its file without unit tests and comments.
fn modules(root: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let relative: PathBuf = path.strip_prefix(root).unwrap().with_extension("");
                let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
                if module.last().is_some_and(|last| last == "mod" || last == "lib" || last == "main") {
                    module.pop();
                }
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                let lines = code.lines().map(|line| line.split("//").next().unwrap());
                found.entry(module).or_insert_with(String::new).push_str(&lines.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    found
}

/// The paths of a `use` tree. For example, `a::{b, c::d}` has `a::b` and `a::c::d`.
fn paths_of_tree(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let segments = |path: &str| path.split("::").map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![segments(tree.split(" as ").next().unwrap())];
    };
    let prefix: Vec<_> = segments(prefix).into_iter().filter(|part| !part.is_empty()).collect();
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in rest.strip_suffix('}').unwrap().chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if c != ',' || depth > 0 {
            parts.last_mut().unwrap().push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| paths_of_tree(part));
    parts.map(|path| [prefix.clone(), path].concat()).collect()
}

/// The paths of a file, in `use` declarations and in other code.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for declaration in code.split("use ").skip(1) {
        if let Some((tree, _)) = declaration.split_once(';').filter(|(tree, _)| !tree.contains(['(', '=', '"'])) {
            found.extend(paths_of_tree(tree));
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    // A word that ends with colons begins a `use` tree.
    let words = code.split(|c: char| !is_word(c)).filter(|word| word.contains("::") && !word.ends_with(':'));
    found.extend(words.map(|word| word.split("::").map(str::to_owned).collect()));
    found
}

/// The modules that each module imports.
fn imports(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let of_file = |(module, code): (&Module, &String)| {
        let resolve = |path: Vec<String>| {
            let supers = path.iter().take_while(|part| *part == "super").count();
            let mut full = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("self") => [module, &path[1..]].concat(),
                Some("super") => [&module[..module.len().saturating_sub(supers)], &path[supers..]].concat(),
                Some(_) => [module, path.as_slice()].concat(),
                None => Vec::new(),
            };
            // The rest of the path names an item of the module.
            while !full.is_empty() && !modules.contains_key(&full) {
                full.pop();
            }
            full
        };
        let imported = paths(code).into_iter().map(resolve).filter(|other| !other.is_empty() && other != module);
        (module.clone(), imported.collect())
    };
    modules.iter().map(of_file).collect()
}

/// Repeatedly removes the modules without imports. The rest are cycles, and modules that import them.
fn cycles(mut imports: BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    loop {
        let done: BTreeSet<_> =
            imports.iter().filter(|(_, imported)| imported.is_empty()).map(|(module, _)| module.clone()).collect();
        if done.is_empty() {
            break;
        }
        imports.retain(|module, _| !done.contains(module));
        for imported in imports.values_mut() {
            imported.retain(|other| !done.contains(other));
        }
    }
    let line = |(module, imported): (&Module, &BTreeSet<Module>)| {
        let imported: Vec<_> = imported.iter().map(|other| other.join("::")).collect();
        format!("{} imports {}", module.join("::"), imported.join(", "))
    };
    imports.iter().map(line).collect()
}

#[test]
fn no_crate_has_an_import_cycle() {
    for name in CRATES {
        let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"));
        assert!(modules.len() > 3, "{name} has sources");
        let found = cycles(imports(&modules));
        assert!(found.is_empty(), "{name} has import cycles:\n{}", found.join("\n"));
    }
}

/// The order of the public modules is that of their links in the documentation of the crate.
#[test]
fn each_module_of_service_kit_uses_only_those_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let documentation = fs::read_to_string(root.join("lib.rs")).unwrap();
    let lines = documentation.lines().filter_map(|line| line.strip_prefix("//! "));
    let names = lines.flat_map(|line| line.split("[`").skip(1).map(|link| link.split('`').next().unwrap()));
    let order: Vec<_> = names.collect();
    assert!(order.len() > 15, "{order:?}");
    let position = |module: &Module| order.iter().position(|name| Some(*name) == module.first().map(String::as_str));
    let exception = ["database".to_owned(), "error_class".to_owned()];
    let mut wrong = Vec::new();
    for (module, imported) in imports(&modules(&root)).iter().filter(|(module, _)| position(module).is_some()) {
        let later = imported.iter().filter(|other| **other != exception && position(other) > position(module));
        wrong.extend(later.map(|other| format!("{} uses {}", module.join("::"), other.join("::"))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cycle_is_found() {
    let module = |name: &str, code: &str| (vec![name.to_owned()], code.to_owned());
    let with = |code: &str| {
        let last = module("c", code);
        let modules =
            [module("a", "use crate::{b::{X, Y}, d};"), module("b", "fn f() { super::c::f() }"), last, module("d", "")];
        cycles(imports(&modules.into_iter().collect()))
    };
    assert_eq!(with("use crate::d::Z as W;"), Vec::<String>::new());
    assert_eq!(with("use crate::a;").len(), 3);
}

#[test]
fn no_file_is_longer_than_400_lines() {
    for name in CRATES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        for (module, code) in modules(&root) {
            let lines = code.lines().count();
            assert!(lines <= 400, "{name}: {} has {lines} lines", module.join("::"));
        }
    }
}
