//! Files of every past format keep loading. Never change a file in `tests/files`; add new ones.

use gradus::prelude::*;

#[test]
fn format_1_als() {
    let fitted = gradus::load("tests/files/als-format-1.gradus").unwrap();
    assert_eq!(fitted.kind, "als");
    assert_eq!(fitted.params["rank"], 2);
    assert_eq!(fitted.report.iterations, 2);
    let model = fitted.recommend().unwrap();
    assert_eq!((model.users().len(), model.items().len()), (6, 5));
    // The prediction as it was when the file was written.
    let predicted = model.predict(&[(Some(0), Some(0))])[0];
    assert!((predicted - EXPECTED).abs() < 1e-4, "{predicted}");
    assert_eq!(
        model
            .top(&Recipient::User(0), 9, &Filter { include_seen: true, ..Filter::default() })
            .unwrap()
            .len(),
        5
    );
}

/// The file has one penalty, for factors and biases alike, and in the units of the ratings: by it a known user
/// folds in to what training gave them.
#[test]
fn format_1_als_folds_in_with_its_old_penalty() {
    let fitted = gradus::load("tests/files/als-format-1.gradus").unwrap();
    let model: &dyn std::any::Any = fitted.model.as_ref();
    let model: &LatentFactors = model.downcast_ref().unwrap();
    for user in 0..model.users().len() {
        let (items, values) = model.history().unwrap().row(user);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let vector = model.fold_in(&profile).unwrap();
        assert!((vector.bias - model.user_bias()[user]).abs() < 1e-5, "user {user}");
        for (folded, known) in vector.factors.iter().zip(model.user_factors(user)) {
            assert!((folded - known).abs() < 1e-5, "user {user}: {folded} for {known}");
        }
    }
}

const EXPECTED: f32 = 3.1475;
