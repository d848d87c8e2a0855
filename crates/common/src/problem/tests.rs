use super::*;

#[test]
fn the_body_has_every_member_of_the_contract() {
    let problem = Problem::invalid("/name", Rule::Required, "is required").member("conflicts", json!([]));
    let body = problem.body("r-1", Legacy::Errors);
    assert_eq!(
        body,
        json!({
            "type": "/problems/invalid-body", "title": "The request body breaks a rule", "status": 400,
            "detail": "/name is required", "instance": "r-1", "code": "invalid-body",
            "violations": [{"pointer": "/name", "code": "required", "message": "is required"}],
            "conflicts": [], "errors": {"message": "/name is required"},
        })
    );
    assert_eq!(Problem::not_found("room").body("r-2", Legacy::Message)["message"], "There is no such room.");
}

#[test]
fn the_detail_lists_ten_violations_at_most() {
    let many = |count: usize| {
        let mut violations = Violations::default();
        (0..count).for_each(|n| violations.push(format!("/{n}"), Rule::Required, "is required"));
        Problem::from(violations).explanation()
    };
    assert!(many(10).ends_with("/9 is required"));
    assert!(many(12).ends_with("/9 is required; and 2 more"));
}

#[test]
fn the_cause_is_not_in_the_body() {
    let problem = Problem::internal("SELECT secret FROM users");
    assert!(!problem.body("r", Legacy::Errors).to_string().contains("secret"));
    assert_eq!(problem.cause(), Some("SELECT secret FROM users"));
}

#[test]
fn codes_are_unique_kebab_case_errors() {
    let mut names: Vec<_> = code::ALL.iter().map(|code| code.name).collect();
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    assert!(code::ALL.iter().all(|code| (400..600).contains(&code.status)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), code::ALL.len());
}

#[test]
fn pointers_are_escaped() {
    let origin = ValuePointerRef::Origin;
    let key = origin.push_key("a/b~c");
    assert_eq!(pointer(key.push_index(2)), "/a~1b~0c/2");
}
